/* The two maps that are read for what they say: the header of a CAR, and the commit. */

#include "_repo.h"

#include <string.h>

/* --- The header --------------------------------------------------------------------------------------------------- */

/* A link of any kind: its CID. */
static bool
read_link(RepoCursor *cursor, RepoCursor *cid)
{
    unsigned major;
    uint64_t size;
    if (!REPO_NEXT_IS(cursor, "\xd8\x2a") || !repo_cbor_head(cursor, &major, &size) || major != 2 || size == 0
        || size > repo_left(cursor) || *cursor->at != 0) {
        return false;
    }
    *cid = (RepoCursor){cursor->at + 1, cursor->at + size};
    cursor->at += size;
    return repo_is_cid(cid->at, repo_left(cid));
}

/* There is one form of it: {"roots": [link, …], "version": 1}. */
const char *
repo_read_header(RepoCursor header, RepoCursor *root)
{
    unsigned major;
    uint64_t count;
    if (!REPO_NEXT_IS(&header, "\xa2\x65roots") || !repo_cbor_head(&header, &major, &count) || major != 4) {
        return "no CAR header, expected a map of roots and version";
    }
    if (count == 0) {
        return "a CAR without a root, expected one or more";
    }
    for (uint64_t i = 0; i < count; i++) {
        RepoCursor cid;
        if (!read_link(&header, &cid)) {
            return "a root that is no link";
        }
        if (i == 0) {
            *root = cid;
        }
    }
    if (!REPO_NEXT_IS(&header, "\x67version\x01") || repo_left(&header) != 0) {
        return "a CAR of another version, or with more in its header; expected version 1";
    }
    return NULL;
}

/* --- The commit --------------------------------------------------------------------------------------------------- */

typedef struct {
    bool present;
    unsigned major;
    uint64_t argument;
    RepoCursor content; /* of a text or byte string; of a link the CID */
} Field;

typedef struct {
    Field did, rev, version, data, prev, sig;
} Fields;

/* Pass `count` values, and whatever is in them. */
static bool
skip_values(RepoCursor *cursor, uint64_t count)
{
    while (count != 0) {
        unsigned major;
        uint64_t argument;
        count--;
        if (repo_left(cursor) == 0) {
            return false;
        }
        if (*cursor->at == 0xfb) {
            if (repo_left(cursor) < 9) {
                return false;
            }
            cursor->at += 9;
            continue;
        }
        if (!repo_cbor_head(cursor, &major, &argument)) {
            return false;
        }
        if (major >= 2 && major <= 5 && argument > repo_left(cursor)) {
            return false;
        }
        switch (major) {
        case 2:
        case 3:
            cursor->at += argument;
            break;
        case 4:
            count += argument;
            break;
        case 5:
            count += 2 * argument;
            break;
        case 6:
            count++;
            break;
        default:
            break;
        }
    }
    return true;
}

static Field *
field_called(Fields *fields, const uint8_t *name, size_t size)
{
    const struct {
        const char *name;
        Field *field;
    } known[] = {
        {"did", &fields->did},   {"rev", &fields->rev},   {"version", &fields->version},
        {"data", &fields->data}, {"prev", &fields->prev}, {"sig", &fields->sig},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].name) == size && memcmp(known[i].name, name, size) == 0) {
            return known[i].field;
        }
    }
    return NULL;
}

static bool
read_field(RepoCursor *cursor, Field *field)
{
    field->present = true;
    RepoCursor value = *cursor;
    if (!skip_values(cursor, 1)) {
        return false;
    }
    value.end = cursor->at;
    if (*value.at >> 5 == 7) {
        field->major = 7;
        field->argument = *value.at;
        return true;
    }
    if (*value.at >> 5 == 6) {
        field->major = 6;
        return read_link(&value, &field->content);
    }
    if (!repo_cbor_head(&value, &field->major, &field->argument)) {
        return false;
    }
    field->content = value;
    return true;
}

/* The fields of a map that was found to be sound; bounded all the same, should the bytes have changed since. */
static bool
read_fields(RepoCursor cursor, Fields *fields)
{
    unsigned major;
    uint64_t count, size;
    if (!repo_cbor_head(&cursor, &major, &count) || major != 5) {
        return false;
    }
    for (; count != 0; count--) {
        if (!repo_cbor_head(&cursor, &major, &size) || major != 3 || size > repo_left(&cursor)) {
            return false;
        }
        Field *field = field_called(fields, cursor.at, (size_t)size);
        cursor.at += size;
        if (!(field == NULL ? skip_values(&cursor, 1) : read_field(&cursor, field))) {
            return false;
        }
    }
    return true;
}

static bool
is_text(const Field *field)
{
    return field->present && field->major == 3 && repo_left(&field->content) <= REPO_LONGEST_TEXT;
}

static bool
names_a_node(const RepoCursor *cid)
{
    return repo_left(cid) == REPO_CID && memcmp(cid->at, "\x01\x71\x12\x20", REPO_CID_HEAD) == 0;
}

/* NULL, or what the commit lacks. */
static const char *
check_commit(const Fields *fields)
{
    const Field *version = &fields->version, *rev = &fields->rev, *prev = &fields->prev;
    if (!version->present || version->major != 0 || (version->argument != 2 && version->argument != 3)) {
        return "another version, expected 2 or 3";
    }
    /* Commits of version 2 were made before there were revs, and some have no prev. */
    const bool old = version->argument == 2;
    if (!is_text(&fields->did) || repo_left(&fields->did.content) < 4 || memcmp(fields->did.content.at, "did:", 4) != 0) {
        return "no did";
    }
    if (!(is_text(rev) && (old || repo_left(&rev->content) != 0)) && !(old && !rev->present)) {
        return "no rev, expected a text";
    }
    if (!fields->data.present || fields->data.major != 6 || !names_a_node(&fields->data.content)) {
        return "data that is no link to a node";
    }
    if (!(prev->present ? prev->major == 6 || (prev->major == 7 && prev->argument == 0xf6) : old)) {
        return "prev that is neither null nor a link";
    }
    return fields->sig.present && fields->sig.major == 2 ? NULL : "sig that is no bytes";
}

const char *
repo_read_commit(RepoCursor block, RepoCommit *commit)
{
    Fields fields = {0};
    if (!read_fields(block, &fields)) {
        return "no map";
    }
    const char *wrong = check_commit(&fields);
    if (wrong == NULL) {
        *commit = (RepoCommit){
            .version = (unsigned)fields.version.argument,
            .did = fields.did.content,
            .rev = fields.rev.content,
            .tree = fields.data.content.at,
        };
    }
    return wrong;
}
