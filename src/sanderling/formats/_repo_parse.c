/* A CAR to the records of its repo: frames, commit, tree. Faults are found in the order of repo_python.py. */

#include "_repo.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const repo_kind_names[REPO_KINDS] = {
    [REPO_TOO_LARGE] = "too_large",
    [REPO_CAR_HEADER] = "car_header",
    [REPO_CAR_FRAME] = "car_frame",
    [REPO_CAR_CID] = "car_cid",
    [REPO_HASH_MISMATCH] = "hash_mismatch",
    [REPO_COMMIT_MISSING] = "commit_missing",
    [REPO_COMMIT_BAD] = "commit_bad",
    [REPO_MST_MISSING_NODE] = "mst_missing_node",
    [REPO_MST_ORDER] = "mst_order",
    [REPO_MST_DEPTH] = "mst_depth",
    [REPO_MST_NODE] = "mst_node",
    [REPO_MST_PREFIX] = "mst_prefix",
};

enum { NESTING_OF_A_COMMIT = 64 };

static const uint8_t DAG_CBOR[REPO_CID_HEAD] = {0x01, 0x71, 0x12, 0x20};
static const uint8_t RAW[REPO_CID_HEAD] = {0x01, 0x55, 0x12, 0x20};

/* One key of a node as it is stored; the pointers are into the CAR, `tree` may be NULL. */
typedef struct {
    const uint8_t *suffix, *tree, *record;
    uint32_t record_hash, tree_hash;
    uint16_t prefix, suffix_size;
} Entry;

/* A node on the way from the root to where the walk is. */
typedef struct {
    size_t offset;           /* of its block */
    size_t first, next, end; /* of its entries, in `entries` */
    size_t key, key_size;    /* of the entry before `next`, in `keys` */
} Node;

typedef struct {
    const uint8_t *car;
    size_t size;
    const RepoOptions *options;
    RepoResult *result;
    RepoBlocks blocks;
    RepoRow nodes, entries, keys; /* of the path: Node, Entry, bytes */
    uint8_t last[REPO_LONGEST_KEY];
    size_t last_size;
    uint64_t read; /* bytes of records */
} Parser;

__attribute__((format(printf, 4, 5))) static RepoKind
fault(Parser *parser, RepoKind kind, size_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->result->found, sizeof(parser->result->found), format, arguments);
    va_end(arguments);
    parser->result->offset = offset;
    return kind;
}

/* A fault with a CID in its words, which have one %s for it. */
static RepoKind
fault_of_cid(Parser *parser, RepoKind kind, size_t offset, const char *format, RepoCursor cid)
{
    char text[REPO_CID_TEXT];
    repo_cid_text(cid, text);
    return fault(parser, kind, offset, format, text);
}

/* --- The CAR ------------------------------------------------------------------------------------------------------ */

/* The frame at the cursor, which goes on behind it. */
static RepoKind
read_frame(Parser *parser, RepoKind kind, RepoCursor *cursor, RepoCursor *frame)
{
    const size_t at = (size_t)(cursor->at - parser->car);
    uint64_t size;
    const char *wrong = repo_varint(cursor, &size);
    if (wrong != NULL) {
        return fault(parser, kind, at, "%s", wrong);
    }
    if (size == 0 || size > repo_left(cursor)) {
        return fault(parser, kind, at, "a frame that says %" PRIu64 " bytes, %zu follow", size, repo_left(cursor));
    }
    *frame = (RepoCursor){cursor->at, cursor->at + size};
    cursor->at = frame->end;
    return REPO_OK;
}

/* Pass the header; the first root, which is the commit. */
static RepoKind
read_header(Parser *parser, RepoCursor *cursor, RepoCursor *root)
{
    RepoCursor header = {0};
    if (parser->size == 0) {
        return fault(parser, REPO_CAR_HEADER, 0, "no bytes, expected a CAR");
    }
    const RepoKind done = read_frame(parser, REPO_CAR_HEADER, cursor, &header);
    if (done != REPO_OK) {
        return done;
    }
    const char *wrong = repo_read_header(header, root);
    return wrong == NULL ? REPO_OK : fault(parser, REPO_CAR_HEADER, 0, "%s", wrong);
}

static RepoKind
read_block(Parser *parser, RepoCursor *cursor)
{
    const RepoOptions *options = parser->options;
    const size_t at = (size_t)(cursor->at - parser->car);
    RepoCursor frame = {0};
    const RepoKind done = read_frame(parser, REPO_CAR_FRAME, cursor, &frame);
    if (done != REPO_OK) {
        return done;
    }
    const uint8_t *cid = frame.at;
    if (repo_left(&frame) < REPO_CID
        || (memcmp(cid, DAG_CBOR, REPO_CID_HEAD) != 0 && memcmp(cid, RAW, REPO_CID_HEAD) != 0)) {
        return fault(parser, REPO_CAR_CID, (size_t)(cid - parser->car),
                     "a CID that is not of 36 bytes, version 1, DAG-CBOR or raw, sha2-256");
    }
    frame.at += REPO_CID;
    const size_t size = repo_left(&frame), start = (size_t)(frame.at - parser->car);
    /* One of more than 32 bits would have no place in an .rca either. */
    if (size > options->block || size > UINT32_MAX) {
        return fault(parser, REPO_TOO_LARGE, at, "a block of %zu bytes, expected at most %" PRIu64, size, options->block);
    }
    if (parser->result->blocks == options->blocks) {
        return fault(parser, REPO_TOO_LARGE, at, "more than %" PRIu64 " blocks", options->blocks);
    }
    const uint32_t hash = repo_blocks_hash(&parser->blocks, cid);
    if (options->verify) {
        uint8_t digest[32];
        repo_sha256(options->sha256, frame.at, size, digest);
        if (memcmp(digest, cid + REPO_CID_HEAD, sizeof(digest)) != 0) {
            return fault_of_cid(parser, REPO_HASH_MISMATCH, start, "a block that is not %s", (RepoCursor){cid, frame.at});
        }
    }
    if (!repo_blocks_put(&parser->blocks, start, (uint32_t)size, hash)) {
        return REPO_NO_MEMORY;
    }
    parser->result->blocks++;
    return REPO_OK;
}

/* --- The commit --------------------------------------------------------------------------------------------------- */

static RepoBlock *
find(const Parser *parser, const uint8_t *cid)
{
    return repo_blocks_find(&parser->blocks, cid, repo_blocks_hash(&parser->blocks, cid));
}

static RepoCursor
content_of(const Parser *parser, const RepoBlock *block)
{
    const uint8_t *start = parser->car + block->start;
    return (RepoCursor){start, start + block->size};
}

/* Read the commit; where its block begins, and the CID of the tree's root. */
static RepoKind
read_commit(Parser *parser, const RepoCursor *root, size_t *offset, const uint8_t **tree)
{
    RepoResult *result = parser->result;
    const RepoBlock *block = repo_left(root) == REPO_CID ? find(parser, root->at) : NULL;
    if (block == NULL) {
        return fault_of_cid(parser, REPO_COMMIT_MISSING, 0, "the root %s is not in the CAR", *root);
    }
    *offset = block->start;
    if (memcmp(root->at, DAG_CBOR, REPO_CID_HEAD) != 0) {
        return fault(parser, REPO_COMMIT_BAD, *offset, "a root that is raw, expected DAG-CBOR");
    }
    uint64_t floats = 0;
    const RepoCursor content = content_of(parser, block);
    const RepoJson sound = repo_json(content, false, NESTING_OF_A_COMMIT, &result->data, &floats);
    result->data.count = 0;
    if (sound == REPO_JSON_NO_MEMORY) {
        return REPO_NO_MEMORY;
    }
    RepoCommit commit = {0};
    const char *wrong = sound == REPO_JSON_BAD ? "no DAG-CBOR" : repo_read_commit(content, &commit);
    if (wrong != NULL) {
        return fault(parser, REPO_COMMIT_BAD, *offset, "no commit: %s", wrong);
    }
    result->version = commit.version;
    result->did_size = repo_left(&commit.did);
    memcpy(result->did, commit.did.at, result->did_size);
    result->rev_size = repo_left(&commit.rev);
    if (result->rev_size != 0) { /* without one there is nothing that it could be copied from */
        memcpy(result->rev, commit.rev.at, result->rev_size);
    }
    *tree = commit.tree;
    return REPO_OK;
}

/* --- Nodes of the tree -------------------------------------------------------------------------------------------- */

/* `p`: any number. */
static bool
read_prefix(RepoCursor *cursor, uint64_t *prefix)
{
    unsigned major;
    return REPO_NEXT_IS(cursor, "ap") && repo_cbor_head(cursor, &major, prefix) && major == 0;
}

/* A link of 36 bytes to something of whatever codec. */
static bool
read_cid(RepoCursor *cursor, const uint8_t **cid)
{
    if (repo_left(cursor) < 5 + REPO_CID || memcmp(cursor->at, "\xd8\x2a\x58\x25\0\x01", 6) != 0
        || memcmp(cursor->at + 7, "\x12\x20", 2) != 0) {
        return false;
    }
    *cid = cursor->at + 5;
    cursor->at += 5 + REPO_CID;
    return true;
}

/* `t` or `l`: a link to a node, or null. */
static bool
read_tree(RepoCursor *cursor, const uint8_t **tree)
{
    *tree = NULL;
    if (REPO_NEXT_IS(cursor, "\xf6")) {
        return true;
    }
    return read_cid(cursor, tree) && (*tree)[1] == DAG_CBOR[1];
}

static bool
read_entry(RepoCursor *cursor, Entry *entry, uint64_t *prefix)
{
    unsigned major;
    uint64_t size;
    if (!REPO_NEXT_IS(cursor, "\xa4" "ak") || !repo_cbor_head(cursor, &major, &size) || major != 2 || size > UINT16_MAX
        || size > repo_left(cursor)) {
        return false;
    }
    entry->suffix = cursor->at;
    entry->suffix_size = (uint16_t)size;
    cursor->at += size;
    return read_prefix(cursor, prefix) && REPO_NEXT_IS(cursor, "at") && read_tree(cursor, &entry->tree)
        && REPO_NEXT_IS(cursor, "av") && read_cid(cursor, &entry->record)
        && (entry->record[1] == DAG_CBOR[1] || entry->record[1] == RAW[1]);
}

static RepoKind
no_node(Parser *parser, const RepoBlock *block, const RepoCursor *cursor)
{
    return fault(parser, REPO_MST_NODE, block->start, "no MST node, near byte %zu of %" PRIu32,
                 block->size - repo_left(cursor), block->size);
}

/* Read the entries of a node, all of them before any is used; and the tree left of them. */
static RepoKind
read_node(Parser *parser, const RepoBlock *block, const uint8_t **tree)
{
    RepoCursor cursor = content_of(parser, block);
    unsigned major;
    uint64_t count;
    if (!REPO_NEXT_IS(&cursor, "\xa2" "ae") || !repo_cbor_head(&cursor, &major, &count) || major != 4
        || count > UINT32_MAX) {
        return no_node(parser, block, &cursor);
    }
    size_t size = 0; /* of the key before */
    for (uint64_t i = 0; i < count; i++) {
        Entry entry;
        uint64_t prefix;
        if (!read_entry(&cursor, &entry, &prefix)) {
            return no_node(parser, block, &cursor);
        }
        if (prefix > size) {
            return fault(parser, REPO_MST_PREFIX, block->start, "%" PRIu64 " bytes of a key of %zu, entry %" PRIu64,
                         prefix, size, i);
        }
        size = (size_t)prefix + entry.suffix_size;
        if (size > REPO_LONGEST_KEY) {
            return fault(parser, REPO_MST_NODE, block->start, "a key of %zu bytes, expected at most %d", size,
                         REPO_LONGEST_KEY);
        }
        entry.prefix = (uint16_t)prefix;
        entry.record_hash = repo_blocks_hash(&parser->blocks, entry.record);
        entry.tree_hash = entry.tree == NULL ? 0 : repo_blocks_hash(&parser->blocks, entry.tree);
        if (!repo_reserve(&parser->entries, 1, sizeof(Entry))) {
            return REPO_NO_MEMORY;
        }
        ((Entry *)parser->entries.data)[parser->entries.count++] = entry;
    }
    if (!REPO_NEXT_IS(&cursor, "al") || !read_tree(&cursor, tree) || repo_left(&cursor) != 0) {
        return no_node(parser, block, &cursor);
    }
    for (size_t i = parser->entries.count - (size_t)count; i < parser->entries.count; i++) {
        const Entry *entry = (Entry *)parser->entries.data + i;
        repo_blocks_near(&parser->blocks, entry->record_hash);
        if (entry->tree != NULL) {
            repo_blocks_near(&parser->blocks, entry->tree_hash);
        }
    }
    return REPO_OK;
}

/* Go down to the node that `*tree` names and that is linked at `offset`; `*tree` becomes the one left of it. */
static RepoKind
enter(Parser *parser, const uint8_t **tree, size_t offset)
{
    RepoBlock *block = find(parser, *tree);
    if (block == NULL) {
        const RepoCursor cid = {*tree, *tree + REPO_CID};
        return fault_of_cid(parser, REPO_MST_MISSING_NODE, offset, "a link to the node %s, which is not there", cid);
    }
    if (block->visited) {
        return fault(parser, REPO_MST_ORDER, block->start, "a node that is linked twice");
    }
    if (parser->nodes.count == parser->options->depth) {
        return fault(parser, REPO_MST_DEPTH, block->start, "a tree of more than %" PRIu64 " levels",
                     parser->options->depth);
    }
    if (!repo_reserve(&parser->nodes, 1, sizeof(Node))) {
        return REPO_NO_MEMORY;
    }
    block->visited = true;
    Node node = {.offset = block->start, .first = parser->entries.count};
    if (parser->nodes.count != 0) {
        const Node *above = (Node *)parser->nodes.data + (parser->nodes.count - 1);
        node.key = above->key + above->key_size;
    }
    RepoKind done = read_node(parser, block, tree);
    node.next = node.first;
    node.end = parser->entries.count;
    ((Node *)parser->nodes.data)[parser->nodes.count++] = node;
    return done;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

enum { LONGEST_COLLECTION = 317, LONGEST_RKEY = 512 };

/* How many of the bytes are characters that names and rkeys may have. */
static size_t
span_of_key(const uint8_t *s, size_t size)
{
    static const bool allowed[256] = {
        ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1,
        ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1,
        ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1,
        ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1, ['N'] = 1,
        ['O'] = 1, ['P'] = 1, ['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1,
        ['Y'] = 1, ['Z'] = 1, ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
        ['8'] = 1, ['9'] = 1, ['_'] = 1, ['~'] = 1, [':'] = 1, ['.'] = 1, ['-'] = 1,
    };
    size_t span = 0;
    while (span < size && allowed[s[span]]) {
        span++;
    }
    return span;
}

/* Split collection/rkey; false if the key is not that. */
static bool
split_key(const uint8_t *key, size_t size, size_t *name_size)
{
    const size_t name = span_of_key(key, size);
    if (name == 0 || name > LONGEST_COLLECTION || name == size || key[name] != '/') {
        return false;
    }
    const uint8_t *rkey = key + name + 1;
    const size_t rkey_size = size - name - 1;
    *name_size = name;
    return rkey_size != 0 && rkey_size <= LONGEST_RKEY && span_of_key(rkey, rkey_size) == rkey_size
        && !(rkey[0] == '.' && (rkey_size == 1 || (rkey_size == 2 && rkey[1] == '.')));
}

/* The collection that a record of this name goes to. Keys ascend, so those of one collection come without a break. */
static RepoCollection *
collection_called(RepoResult *result, const uint8_t *name, size_t size, size_t data)
{
    if (result->collections.count != 0) {
        RepoCollection *last = (RepoCollection *)result->collections.data + (result->collections.count - 1);
        if (last->name_size == size && memcmp((uint8_t *)result->names.data + last->name, name, size) == 0) {
            return last;
        }
    }
    if (!repo_reserve(&result->collections, 1, sizeof(RepoCollection)) || !repo_reserve(&result->names, size, 1)) {
        return NULL;
    }
    RepoCollection *fresh = (RepoCollection *)result->collections.data + result->collections.count++;
    *fresh = (RepoCollection){.name = result->names.count, .name_size = size, .data = data};
    memcpy((uint8_t *)result->names.data + result->names.count, name, size);
    result->names.count += size;
    return fresh;
}

static void
little_endian(uint8_t *out, size_t value, int size)
{
    for (int i = 0; i < size; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Append [u16 size, rkey, u32 size, JSON], and enter it into its collection. */
static RepoKind
keep_record(Parser *parser, const RepoBlock *block, const uint8_t *key, size_t name_size, size_t rkey_size)
{
    RepoResult *result = parser->result;
    RepoRow *data = &result->data;
    const uint8_t *rkey = key + name_size + 1;
    const size_t mark = data->count, json = mark + 2 + rkey_size + 4;
    if (!repo_reserve(data, json - mark, 1)) {
        return REPO_NO_MEMORY;
    }
    little_endian((uint8_t *)data->data + mark, rkey_size, 2);
    memcpy((uint8_t *)data->data + mark + 2, rkey, rkey_size);
    data->count = json;
    uint64_t floats = 0;
    const RepoJson done = repo_json(content_of(parser, block), parser->options->strip, parser->options->nesting, data, &floats);
    if (done == REPO_JSON_NO_MEMORY) {
        return REPO_NO_MEMORY;
    }
    if (done == REPO_JSON_BAD) {
        data->count = mark;
        result->bad_records++;
        return REPO_OK;
    }
    const size_t size = data->count - json;
    result->json_bytes += size;
    result->floats += floats;
    if (result->json_bytes > parser->options->output || size > UINT32_MAX) {
        return fault(parser, REPO_TOO_LARGE, block->start, "JSON of %" PRIu64 " bytes, expected at most %" PRIu64,
                     result->json_bytes, parser->options->output);
    }
    little_endian((uint8_t *)data->data + json - 4, size, 4);
    RepoCollection *collection = collection_called(result, key, name_size, mark);
    if (collection == NULL) {
        return REPO_NO_MEMORY;
    }
    collection->count++;
    collection->data_size += data->count - mark;
    result->records++;
    return REPO_OK;
}

static RepoKind
read_record(Parser *parser, const Entry *entry, const uint8_t *key, size_t size)
{
    RepoResult *result = parser->result;
    size_t name_size;
    if (!split_key(key, size, &name_size)) {
        result->bad_keys++;
        return REPO_OK;
    }
    const RepoBlock *block = repo_blocks_find(&parser->blocks, entry->record, entry->record_hash);
    if (block == NULL) {
        result->missing++;
        return REPO_OK;
    }
    parser->read += block->size + size; /* a key is a few bytes in its node, whatever it unfolds to */
    if (parser->read > parser->options->output) {
        return fault(parser, REPO_TOO_LARGE, block->start,
                     "records and keys of %" PRIu64 " bytes, expected at most %" PRIu64, parser->read,
                     parser->options->output);
    }
    return keep_record(parser, block, key, name_size, size - name_size - 1);
}

/* --- The walk ------------------------------------------------------------------------------------------------------ */

static int
compared(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size)
{
    const int order = memcmp(one, other, one_size < other_size ? one_size : other_size);
    return order != 0 ? order : (one_size > other_size) - (one_size < other_size);
}

enum { SHOWN = 80 };

/* The beginning of a key in words; it may have any bytes. */
static const char *
shown(char out[SHOWN + 1], const uint8_t *key, size_t size)
{
    const size_t count = size < SHOWN ? size : SHOWN;
    for (size_t i = 0; i < count; i++) {
        out[i] = key[i] >= 0x20 && key[i] < 0x7f ? (char)key[i] : '?';
    }
    out[count] = '\0';
    return out;
}

/* Take the next entry of the last node of the path: its key, its record, and the tree right of it. */
static RepoKind
take_entry(Parser *parser, Node *node, const uint8_t **tree)
{
    const Entry *entry = (Entry *)parser->entries.data + node->next++;
    parser->keys.count = node->key;
    if (!repo_reserve(&parser->keys, REPO_LONGEST_KEY, 1)) {
        return REPO_NO_MEMORY;
    }
    uint8_t *key = (uint8_t *)parser->keys.data + node->key;
    memcpy(key + entry->prefix, entry->suffix, entry->suffix_size);
    const size_t size = (size_t)entry->prefix + entry->suffix_size;
    node->key_size = size;
    parser->keys.count += size;
    if (compared(key, size, parser->last, parser->last_size) <= 0) {
        char one[SHOWN + 1], other[SHOWN + 1];
        return fault(parser, REPO_MST_ORDER, node->offset, "key '%s' after '%s'", shown(one, key, size),
                     shown(other, parser->last, parser->last_size));
    }
    memcpy(parser->last, key, size);
    parser->last_size = size;
    *tree = entry->tree;
    return read_record(parser, entry, key, size);
}

static RepoKind
walk(Parser *parser, const uint8_t *tree, size_t offset)
{
    for (;;) {
        RepoKind done = REPO_OK;
        if (tree != NULL) {
            done = enter(parser, &tree, offset);
        }
        else {
            Node *node = (Node *)parser->nodes.data + (parser->nodes.count - 1);
            if (node->next < node->end) {
                done = take_entry(parser, node, &tree);
            }
            else {
                parser->entries.count = node->first;
                if (--parser->nodes.count == 0) {
                    return REPO_OK;
                }
            }
        }
        if (done != REPO_OK) {
            return done;
        }
        offset = ((Node *)parser->nodes.data + (parser->nodes.count - 1))->offset;
    }
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static RepoKind
parse(Parser *parser)
{
    const RepoOptions *options = parser->options;
    RepoCursor cursor = {parser->car, parser->car + parser->size};
    RepoCursor root = {0};
    const uint8_t *tree = NULL;
    size_t offset = 0;
    if (parser->size > options->car) {
        return fault(parser, REPO_TOO_LARGE, 0, "%zu bytes, expected at most %" PRIu64, parser->size, options->car);
    }
    RepoKind done = read_header(parser, &cursor, &root);
    if (done != REPO_OK) {
        return done;
    }
    if (!repo_blocks_init(&parser->blocks, parser->car, parser->size, options->key)) {
        return REPO_NO_MEMORY;
    }
    while (done == REPO_OK && cursor.at < cursor.end) {
        done = read_block(parser, &cursor);
    }
    if (done == REPO_OK) {
        done = read_commit(parser, &root, &offset, &tree);
    }
    /* What a usual repo becomes, so that the row need not grow. */
    if (done == REPO_OK && !repo_reserve(&parser->result->data, parser->size / 4 * 3, 1)) {
        return REPO_NO_MEMORY;
    }
    return done == REPO_OK ? walk(parser, tree, offset) : done;
}

/* The names of all collections, for the one that is sorting them: qsort hands nothing on. */
typedef struct {
    const uint8_t *name;
    size_t size;
    RepoCollection collection;
} Named;

static int
by_name(const void *one, const void *other)
{
    const Named *a = one, *b = other;
    return compared(a->name, a->size, b->name, b->size);
}

/* The tree's order is nearly that of names; but `a.b.c` comes before `a.b` there, since `.` is less than `/`. */
static RepoKind
sort_collections(RepoResult *result)
{
    RepoCollection *collections = result->collections.data;
    const size_t count = result->collections.count;
    RepoRow row = {0};
    if (count < 2) {
        return REPO_OK;
    }
    if (!repo_reserve(&row, count, sizeof(Named))) {
        return REPO_NO_MEMORY;
    }
    Named *named = row.data;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *name = (uint8_t *)result->names.data + collections[i].name;
        named[i] = (Named){name, collections[i].name_size, collections[i]};
    }
    qsort(named, count, sizeof(Named), by_name);
    for (size_t i = 0; i < count; i++) {
        collections[i] = named[i].collection;
    }
    free(named);
    return REPO_OK;
}

RepoKind
repo_parse(const uint8_t *car, size_t size, const RepoOptions *options, RepoResult *result)
{
    memset(result, 0, sizeof(*result));
    Parser parser = {.car = car, .size = size, .options = options, .result = result};
    RepoKind done = parse(&parser);
    repo_blocks_free(&parser.blocks);
    free(parser.nodes.data);
    free(parser.entries.data);
    free(parser.keys.data);
    if (done == REPO_OK) {
        done = sort_collections(result);
    }
    return result->kind = done;
}

void
repo_release(RepoResult *result)
{
    free(result->collections.data);
    free(result->names.data);
    free(result->data.data);
}
