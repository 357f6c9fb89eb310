/* One record's DAG-CBOR to atproto's JSON, in one pass. cbor.py says what is read and what is written. */

#include "_repo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNSIGNED, NEGATIVE, BYTES, TEXT, LIST, MAP, TAG, SIMPLE };
enum { LINK_TAG = 42, LONGEST_VARINT = 9 };

/* --- Heads, varints, CIDs ---------------------------------------------------------------------------------------- */

bool
repo_cbor_head(RepoCursor *cursor, unsigned *major, uint64_t *argument)
{
    if (cursor->at == cursor->end) {
        return false;
    }
    const uint8_t first = *cursor->at++;
    const unsigned info = first & 31;
    *major = first >> 5;
    if (info < 24) {
        *argument = info;
        return true;
    }
    if (info > 27) {
        return false;
    }
    const size_t size = (size_t)1 << (info - 24);
    if (size > (size_t)(cursor->end - cursor->at)) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value = value << 8 | *cursor->at++;
    }
    *argument = value;
    /* The shortest form: not below 24 in one byte, nor in 2, 4 or 8 what half of them can hold. */
    return size == 1 ? value >= 24 : value >> (4 * size) != 0;
}

const char *
repo_varint(RepoCursor *cursor, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < LONGEST_VARINT && cursor->at < cursor->end; i++) {
        const uint8_t byte = *cursor->at++;
        sum |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = sum;
            return byte == 0 && i != 0 ? "a varint that is not in the shortest form" : NULL;
        }
    }
    return "a varint without an end, expected one of at most 9 bytes";
}

bool
repo_is_cid(const uint8_t *data, size_t size)
{
    RepoCursor cursor = {data, data + size};
    uint64_t version, codec, hash, length;
    return size <= REPO_LONGEST_CID && repo_varint(&cursor, &version) == NULL && version == 1
        && repo_varint(&cursor, &codec) == NULL && repo_varint(&cursor, &hash) == NULL
        && repo_varint(&cursor, &length) == NULL && length == (uint64_t)(cursor.end - cursor.at);
}

/* --- Writing. Each of these appends to `out`, where the caller has made room. ------------------------------------- */

static inline void
put(RepoRow *out, const void *data, size_t size)
{
    memcpy((uint8_t *)out->data + out->count, data, size);
    out->count += size;
}

static inline void
put_byte(RepoRow *out, char byte)
{
    ((char *)out->data)[out->count++] = byte;
}

#define PUT(out, text) put(out, text, sizeof(text) - 1)

static void
put_integer(RepoRow *out, uint64_t argument, bool negative)
{
    if (negative) {
        if (argument == UINT64_MAX) {
            PUT(out, "-18446744073709551616");
            return;
        }
        put_byte(out, '-');
        argument++;
    }
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + argument % 10);
        argument /= 10;
    } while (argument != 0);
    put(out, digits + at, sizeof(digits) - at);
}

/* Groups of `bits` bits as digits, the last one filled up with zeros: base32 and base64 without padding. */
static void
put_base(RepoRow *out, const uint8_t *data, size_t size, unsigned bits, const char *alphabet)
{
    uint32_t pending = 0;
    unsigned count = 0;
    const uint32_t mask = (1u << bits) - 1;
    for (size_t i = 0; i < size; i++) {
        pending = pending << 8 | data[i];
        for (count += 8; count >= bits; count -= bits) {
            put_byte(out, alphabet[pending >> (count - bits) & mask]);
        }
    }
    if (count != 0) {
        put_byte(out, alphabet[pending << (bits - count) & mask]);
    }
}

static const char BASE32[] = "abcdefghijklmnopqrstuvwxyz234567";

static void
put_link(RepoRow *out, const uint8_t *cid, size_t size)
{
    PUT(out, "{\"$link\":\"b");
    put_base(out, cid, size, 5, BASE32);
    PUT(out, "\"}");
}

void
repo_cid_text(RepoCursor cid, char text[REPO_CID_TEXT])
{
    RepoRow out = {text, 1, REPO_CID_TEXT};
    text[0] = 'b';
    put_base(&out, cid.at, repo_left(&cid), 5, BASE32);
    put_byte(&out, '\0');
}

static void
put_bytes(RepoRow *out, const uint8_t *data, size_t size)
{
    PUT(out, "{\"$bytes\":\"");
    put_base(out, data, size, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    PUT(out, "\"}");
}

/* --- Text: checked to be UTF-8 and escaped in one go -------------------------------------------------------------- */

/* The next four bytes, the first of them lowest; zeros where there are none. */
static inline uint32_t
next_four(const uint8_t *s, size_t left)
{
    uint32_t four = s[0];
    if (left >= 4) {
        return four | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
    }
    for (size_t i = 1; i < left; i++) {
        four |= (uint32_t)s[i] << (8 * i);
    }
    return four;
}

/* How many bytes the character has that these begin with, the first being 0x80 or above; 0 if it is none. */
static inline size_t
character(uint32_t four)
{
    const uint32_t first = four & 0xff, second = four >> 8 & 0x3f;
    if ((four & 0xc0e0) == 0x80c0) {
        return first >= 0xc2 ? 2 : 0;
    }
    if ((four & 0xc0c0f0) == 0x8080e0) {
        /* No overlong form, no surrogate. */
        const uint32_t upper = (first & 0x0f) << 6 | second;
        return upper >= 0x20 && (upper & 0x3e0) != 0x360 ? 3 : 0;
    }
    if ((four & 0xc0c0c0f8) == 0x808080f0) {
        /* No overlong form, nothing past 10FFFF. */
        const uint32_t upper = (first & 0x07) << 6 | second;
        return upper >= 0x10 && upper < 0x110 ? 4 : 0;
    }
    return 0;
}

static uint8_t *
escape(uint8_t *to, uint8_t byte)
{
    static const char SHORT[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    *to++ = '\\';
    for (const char *pair = SHORT; *pair != '\0'; pair += 2) {
        if (byte == (uint8_t)pair[0]) {
            *to++ = (uint8_t)pair[1];
            return to;
        }
    }
    memcpy(to, "u00", 3);
    to[3] = (uint8_t)('0' + (byte >> 4));
    to[4] = (uint8_t)"0123456789abcdef"[byte & 15];
    return to + 5;
}

#define EACH(byte) (0x0101010101010101u * (uint64_t)(byte))

/* Not 0 if one of eight bytes is a control character, a quote, a backslash or above 0x7f. */
static inline uint64_t
special(uint64_t word)
{
    const uint64_t quote = word ^ EACH('"'), backslash = word ^ EACH('\\');
    return ((word - EACH(0x20)) | (quote - EACH(1)) | (backslash - EACH(1)) | word) & EACH(0x80);
}

/* The most that a text takes: all of it escaped, quotes, a comma, a colon, and what is copied beyond its end. */
static inline size_t
text_room(size_t size)
{
    return size > SIZE_MAX / 8 ? SIZE_MAX : 6 * size + 4 + sizeof(uint64_t);
}

static inline bool
is_special(uint8_t byte)
{
    return byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\';
}

/* How many of the eight bytes of a word come before the first special one, given what `special` said. */
static inline size_t
plain_before(uint64_t found, const uint8_t *s)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    (void)s;
    return (size_t)__builtin_ctzll(found) / 8;
#else
    (void)found;
    size_t count = 0;
    while (!is_special(s[count])) {
        count++;
    }
    return count;
#endif
}

/* Write one special character; its size in the text, 0 if it is no UTF-8. */
static inline size_t
put_special(uint8_t **to, const uint8_t *s, size_t left)
{
    if (*s < 0x80) {
        *to = escape(*to, *s);
        return 1;
    }
    const uint32_t four = next_four(s, left);
    const size_t size = character(four);
    for (size_t i = 0; i < 4; i++) {
        (*to)[i] = (uint8_t)(four >> (8 * i));
    }
    *to += size;
    return size;
}

/* Returns false if it is no UTF-8. */
static bool
put_text(RepoRow *out, const uint8_t *s, size_t left)
{
    uint8_t *to = (uint8_t *)out->data + out->count;
    *to++ = '"';
    while (left >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, s, sizeof(word));
        memcpy(to, &word, sizeof(word));
        const uint64_t found = special(word);
        size_t plain = found == 0 ? sizeof(word) : plain_before(found, s);
        s += plain, to += plain, left -= plain;
        if (found == 0) {
            continue;
        }
        do {
            const size_t size = put_special(&to, s, left);
            if (size == 0) {
                return false;
            }
            s += size, left -= size;
        } while (left != 0 && is_special(*s));
    }
    if (left >= 4) {
        /* The two halves overlap, and most texts end here: names and keys are short. */
        uint32_t half[2];
        memcpy(&half[0], s, 4);
        memcpy(&half[1], s + left - 4, 4);
        if (special((uint64_t)half[0] << 32 | half[1]) == 0) {
            memcpy(to, &half[0], 4);
            memcpy(to + left - 4, &half[1], 4);
            to += left;
            left = 0;
        }
    }
    while (left != 0) {
        size_t size = 1;
        if (!is_special(*s)) {
            *to++ = *s;
        }
        else if ((size = put_special(&to, s, left)) == 0) {
            return false;
        }
        s += size, left -= size;
    }
    *to++ = '"';
    out->count = (size_t)(to - (uint8_t *)out->data);
    return true;
}

/* --- Floats ------------------------------------------------------------------------------------------------------- */

/* The number that `digits` and a power of ten make. Without a point, so whatever the locale calls one. */
static double
scaled(const char *digits, int exponent)
{
    char text[40];
    snprintf(text, sizeof(text), "%.20se%d", digits, exponent);
    return strtod(text, NULL);
}

/* `value`, above 0, rounded to `count` digits; the power of ten of the last. True if that reads as `value` again. */
static bool
rounded(double value, int count, char digits[24], int *exponent)
{
    char text[40];
    snprintf(text, sizeof(text), "%.*e", count - 1, value);
    int size = 0;
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9' && size < count) {
            digits[size++] = *at;
        }
    }
    digits[size] = '\0';
    *exponent = atoi(at + 1) - (count - 1);
    if (scaled(digits, *exponent) == value) {
        return true;
    }
    /* Below a power of two numbers are twice as dense, so the next text above may be read as it though it is farther. */
    int power;
    if (frexp(value, &power) != 0.5 || digits[size - 1] == '9') {
        return false;
    }
    digits[size - 1]++;
    return scaled(digits, *exponent) == value;
}

/* Digits of a double above 0 that identify it, as few as will do. */
static int
shortest(double value, char digits[24], int *exponent)
{
    /* Of a normal number 15 digits are exact if any fewer are, and then zeros follow those. By 17 every one is; should
       somebody have changed how this thread rounds, they are at least near it, and `digits` has no room for more. */
    int count = value < 2.2250738585072014e-308 ? 1 : 15;
    while (!rounded(value, count, digits, exponent) && count < 17) {
        count++;
    }
    int size = (int)strlen(digits);
    while (size > 1 && digits[size - 1] == '0') {
        size--;
        ++*exponent;
    }
    digits[size] = '\0';
    return size;
}

size_t
repo_float(double value, char out[REPO_LONGEST_FLOAT])
{
    const char *sign = signbit(value) ? "-" : "";
    char digits[24] = "0";
    int exponent = 0;
    const int size = value == 0 ? 1 : shortest(fabs(value), digits, &exponent);
    const int point = size + exponent; /* how many digits stand before it */
    int written;
    if (point > 16 || point < -3) {
        written = snprintf(out, REPO_LONGEST_FLOAT, "%s%c%s%se%c%02d", sign, digits[0], size > 1 ? "." : "", digits + 1,
                           point > 0 ? '+' : '-', abs(point - 1));
    }
    else if (point <= 0) {
        written = snprintf(out, REPO_LONGEST_FLOAT, "%s0.%.*s%s", sign, -point, "000", digits);
    }
    else if (exponent >= 0) {
        written = snprintf(out, REPO_LONGEST_FLOAT, "%s%s%.*s.0", sign, digits, exponent, "000000000000000");
    }
    else {
        written = snprintf(out, REPO_LONGEST_FLOAT, "%s%.*s.%s", sign, point, digits, digits + point);
    }
    return (size_t)written;
}

static bool
put_float(RepoRow *out, RepoCursor *cursor)
{
    if (cursor->end - cursor->at < 8) {
        return false;
    }
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | *cursor->at++;
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) {
        return false;
    }
    out->count += repo_float(value, (char *)out->data + out->count);
    return true;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

/* A map or list that is not at its end. */
typedef struct {
    uint64_t left; /* values or entries */
    bool is_map;
    const uint8_t *key; /* the one before; NULL at first */
    size_t key_size;
} Level;

typedef struct {
    RepoCursor cursor;
    RepoRow *out;
    bool strip;
    unsigned depth, nesting;
    /* While the value of an entry called `cid` is written: on which level, and where it is cut off again. 0 if not. */
    unsigned stripping;
    size_t strip_at;
    uint64_t *floats;
    Level levels[REPO_MOST_NESTING];
} Writer;

/* SMALL is more than anything takes but a text, a byte string or a link. */
enum { SMALL = REPO_LONGEST_FLOAT, ROOM_OF_LINK = 16 + REPO_LONGEST_CID * 8 / 5 };

static RepoJson
write_simple(Writer *writer)
{
    switch (*writer->cursor.at++) {
    case 0xf4:
        PUT(writer->out, "false");
        return REPO_JSON_OK;
    case 0xf5:
        PUT(writer->out, "true");
        return REPO_JSON_OK;
    case 0xf6:
        PUT(writer->out, "null");
        return REPO_JSON_OK;
    case 0xfb:
        ++*writer->floats;
        return put_float(writer->out, &writer->cursor) ? REPO_JSON_OK : REPO_JSON_BAD;
    default:
        return REPO_JSON_BAD;
    }
}

static RepoJson
write_link(Writer *writer, uint64_t tag)
{
    unsigned major;
    uint64_t size;
    RepoCursor *cursor = &writer->cursor;
    if (tag != LINK_TAG || cursor->at == cursor->end || *cursor->at >> 5 != BYTES
        || !repo_cbor_head(cursor, &major, &size) || size > (uint64_t)(cursor->end - cursor->at)) {
        return REPO_JSON_BAD;
    }
    const uint8_t *content = cursor->at;
    cursor->at += size;
    if (size == 0 || content[0] != 0 || !repo_is_cid(content + 1, (size_t)size - 1)) {
        return REPO_JSON_BAD;
    }
    if (!repo_reserve(writer->out, ROOM_OF_LINK, 1)) {
        return REPO_JSON_NO_MEMORY;
    }
    put_link(writer->out, content + 1, (size_t)size - 1);
    return REPO_JSON_OK;
}

static RepoJson
write_string(Writer *writer, bool is_text, size_t size)
{
    const uint8_t *content = writer->cursor.at;
    writer->cursor.at += size;
    if (!repo_reserve(writer->out, is_text ? text_room(size) : SMALL + size / 3 * 4 + 4, 1)) {
        return REPO_JSON_NO_MEMORY;
    }
    if (!is_text) {
        put_bytes(writer->out, content, size);
    }
    else if (!put_text(writer->out, content, size)) {
        return REPO_JSON_BAD;
    }
    return REPO_JSON_OK;
}

/* Write the value at the cursor; of a map or list that has something in it only the beginning. */
static RepoJson
write_value(Writer *writer)
{
    RepoCursor *cursor = &writer->cursor;
    if (!repo_reserve(writer->out, SMALL, 1)) {
        return REPO_JSON_NO_MEMORY;
    }
    if (cursor->at == cursor->end) {
        return REPO_JSON_BAD;
    }
    if (*cursor->at >> 5 == SIMPLE) {
        return write_simple(writer);
    }
    unsigned major;
    uint64_t argument;
    if (!repo_cbor_head(cursor, &major, &argument)) {
        return REPO_JSON_BAD;
    }
    if (major <= NEGATIVE) {
        put_integer(writer->out, argument, major == NEGATIVE);
        return REPO_JSON_OK;
    }
    if (major == TAG) {
        return write_link(writer, argument);
    }
    /* Bytes or items, which have a byte each at least. */
    if (argument > (uint64_t)(cursor->end - cursor->at)) {
        return REPO_JSON_BAD;
    }
    if (major <= TEXT) {
        return write_string(writer, major == TEXT, (size_t)argument);
    }
    if (writer->depth == writer->nesting) {
        return REPO_JSON_BAD;
    }
    writer->levels[writer->depth++] = (Level){.left = argument, .is_map = major == MAP};
    put_byte(writer->out, major == MAP ? '{' : '[');
    return REPO_JSON_OK;
}

/* Read the key of the next entry, and write it unless the entry is to be stripped. */
static RepoJson
write_key(Writer *writer, Level *level)
{
    RepoCursor *cursor = &writer->cursor;
    unsigned major;
    uint64_t size;
    if (!repo_cbor_head(cursor, &major, &size) || major != TEXT || size > (uint64_t)(cursor->end - cursor->at)) {
        return REPO_JSON_BAD;
    }
    const uint8_t *key = cursor->at;
    cursor->at += size;
    if (level->key != NULL
        && (size < level->key_size || (size == level->key_size && memcmp(key, level->key, (size_t)size) <= 0))) {
        return REPO_JSON_BAD;
    }
    level->key = key;
    level->key_size = (size_t)size;
    if (writer->strip && writer->stripping == 0 && size == 3 && memcmp(key, "cid", 3) == 0) {
        writer->stripping = writer->depth;
        writer->strip_at = writer->out->count;
        return REPO_JSON_OK;
    }
    if (!repo_reserve(writer->out, text_room((size_t)size), 1)) {
        return REPO_JSON_NO_MEMORY;
    }
    if (((char *)writer->out->data)[writer->out->count - 1] != '{') {
        put_byte(writer->out, ',');
    }
    if (!put_text(writer->out, key, (size_t)size)) {
        return REPO_JSON_BAD;
    }
    put_byte(writer->out, ':');
    return REPO_JSON_OK;
}

/* After a value: close what is at its end, and go on to where the next value is expected. */
static RepoJson
write_between(Writer *writer)
{
    if (!repo_reserve(writer->out, REPO_MOST_NESTING, 1)) {
        return REPO_JSON_NO_MEMORY;
    }
    while (writer->depth != 0) {
        Level *level = &writer->levels[writer->depth - 1];
        if (writer->stripping == writer->depth) {
            writer->out->count = writer->strip_at;
            writer->stripping = 0;
        }
        if (level->left != 0) {
            level->left--;
            if (level->is_map) {
                return write_key(writer, level);
            }
            if (((char *)writer->out->data)[writer->out->count - 1] != '[') {
                put_byte(writer->out, ',');
            }
            return REPO_JSON_OK;
        }
        put_byte(writer->out, level->is_map ? '}' : ']');
        writer->depth--;
    }
    return REPO_JSON_OK;
}

RepoJson
repo_json(RepoCursor block, bool strip, unsigned nesting, RepoRow *out, uint64_t *floats)
{
    Writer writer; /* large, so not cleared: levels are set when they are entered */
    writer.cursor = block;
    writer.out = out;
    writer.strip = strip;
    writer.depth = 0;
    writer.nesting = nesting;
    writer.stripping = 0;
    writer.strip_at = 0;
    writer.floats = floats;
    do {
        RepoJson done = write_value(&writer);
        if (done == REPO_JSON_OK) {
            done = write_between(&writer);
        }
        if (done != REPO_JSON_OK) {
            return done;
        }
    } while (writer.depth != 0);
    return writer.cursor.at == writer.cursor.end ? REPO_JSON_OK : REPO_JSON_BAD;
}
