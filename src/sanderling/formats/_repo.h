/* The parser of repos, without Python: what the module (_repo.c) and the fuzzer have in common.

   It is compared byte for byte with repo_python.py, which is shorter and says why things are as they are. What it adds:

   - Nothing here calls itself, and no size is believed before it was compared with what is left.
   - A number that bounds memory is read once and kept. Buffers may be changed by others while they are parsed (a mapped
     file, a bytearray); the result is then as good as the bytes were, and nothing is read or written out of bounds.
   - Memory comes from one function, repo_reserve (and the table), and each failure ends the parsing with REPO_NO_MEMORY. */

#ifndef SANDERLING_REPO_H
#define SANDERLING_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define REPO_CID 36            /* bytes of a CID that names a block */
#define REPO_CID_HEAD 4        /* of them, before the hash */
#define REPO_LONGEST_CID 100   /* of a link to anything */
#define REPO_CID_TEXT 164      /* for the text of one, and its end */
#define REPO_LONGEST_KEY 1024
#define REPO_LONGEST_TEXT 2048 /* of the commit: the DID, the rev */
#define REPO_MOST_NESTING 256
#define REPO_LONGEST_FLOAT 32 /* with room to spare: a sign, 17 digits, a point and e-308 */

/* The kinds of RepoError; the first are those of `Kind`, in its order. */
typedef enum {
    REPO_TOO_LARGE,
    REPO_CAR_HEADER,
    REPO_CAR_FRAME,
    REPO_CAR_CID,
    REPO_HASH_MISMATCH,
    REPO_COMMIT_MISSING,
    REPO_COMMIT_BAD,
    REPO_MST_MISSING_NODE,
    REPO_MST_ORDER,
    REPO_MST_DEPTH,
    REPO_MST_NODE,
    REPO_MST_PREFIX,
    REPO_KINDS,
    REPO_OK = REPO_KINDS,
    REPO_NO_MEMORY,
} RepoKind;

extern const char *const repo_kind_names[REPO_KINDS];

/* --- Memory: _repo_blocks.c ------------------------------------------------------------------------------------- */

/* Items of one size, in a row that grows. */
typedef struct {
    void *data;
    size_t count, room; /* in items */
} RepoRow;

bool repo_grow(RepoRow *row, size_t more, size_t size);

#ifdef REPO_FUZZ
/* The fuzzer lets the n-th request for memory fail, and has the sanitizer guard what was not asked for. */
bool fuzz_refuses_memory(void);
void fuzz_guards_behind(const RepoRow *row, size_t more, size_t size);
#else
#define fuzz_refuses_memory() false
#define fuzz_guards_behind(row, more, size)
#endif

/* Make room for `more` items of `size` bytes; false if there is none to be had. */
static inline bool
repo_reserve(RepoRow *row, size_t more, size_t size)
{
    if (more > row->room - row->count && !repo_grow(row, more, size)) {
        return false;
    }
    fuzz_guards_behind(row, more, size);
    return true;
}

/* A block of the CAR, and a place in the table of blocks. */
typedef struct {
    size_t start; /* where it is, right behind its CID; 0 for a free place */
    uint32_t size;
    uint32_t hash : 31; /* half of the hash of its CID */
    uint32_t visited : 1; /* as a node of the tree */
} RepoBlock;

/* Blocks by CID: a hash table with open addressing. */
typedef struct {
    const uint8_t *car;
    uint64_t key[2];
    RepoBlock *slots;
    unsigned bits; /* there are 2**bits slots */
    size_t count;  /* of those taken */
} RepoBlocks;

bool repo_blocks_init(RepoBlocks *blocks, const uint8_t *car, size_t size, const uint64_t key[2]);
void repo_blocks_free(RepoBlocks *blocks);

/* Enter the block that stands at `start`, its CID right before it. One of the same CID is replaced. */
bool repo_blocks_put(RepoBlocks *blocks, size_t start, uint32_t size, uint32_t hash);

/* The hash by which a CID is found. It takes two misses of the cache to find one at random; so whoever knows what will
   be looked for asks for the hash first, then says that it is near, and looks for it after some other work. */
uint32_t repo_blocks_hash(const RepoBlocks *blocks, const uint8_t *cid);
void repo_blocks_near(const RepoBlocks *blocks, uint32_t hash);

/* The block that `cid`, of REPO_CID bytes, names; NULL if it is not there. */
RepoBlock *repo_blocks_find(const RepoBlocks *blocks, const uint8_t *cid, uint32_t hash);

/* --- SHA-256: _repo_sha256.c ------------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    void (*compress)(uint32_t state[8], const uint8_t *data, size_t blocks);
    bool (*available)(void);
} RepoSha256;

/* All that were compiled, the fastest first; the last is always available. */
extern const RepoSha256 repo_sha256_all[];
extern const size_t repo_sha256_count;

const RepoSha256 *repo_sha256_fastest(void);
void repo_sha256(const RepoSha256 *sha256, const uint8_t *data, size_t size, uint8_t digest[32]);

/* --- DAG-CBOR: _repo_json.c ------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
} RepoCursor;

static inline size_t
repo_left(const RepoCursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* Whether these bytes come next; then they are passed. */
static inline bool
repo_next_is(RepoCursor *cursor, const void *bytes, size_t size)
{
    if (repo_left(cursor) < size || memcmp(cursor->at, bytes, size) != 0) {
        return false;
    }
    cursor->at += size;
    return true;
}

#define REPO_NEXT_IS(cursor, text) repo_next_is(cursor, text, sizeof(text) - 1)

/* Read a head that is not of major type 7: its type and its argument, which must be in the shortest form. */
bool repo_cbor_head(RepoCursor *cursor, unsigned *major, uint64_t *argument);

/* Whether these bytes are a CIDv1, of whatever codec and hash; and the text of one. */
bool repo_is_cid(const uint8_t *data, size_t size);
void repo_cid_text(RepoCursor cid, char text[REPO_CID_TEXT]);

/* An unsigned LEB128 number of at most nine bytes; NULL, or what is wrong with it. */
const char *repo_varint(RepoCursor *cursor, uint64_t *value);

typedef enum { REPO_JSON_OK, REPO_JSON_BAD, REPO_JSON_NO_MEMORY } RepoJson;

/* Append the JSON of one record to `out` (bytes) and add its floats. If it is bad, `out` has a piece of it. */
RepoJson repo_json(RepoCursor block, bool strip, unsigned nesting, RepoRow *out, uint64_t *floats);

/* The shortest text that is read as `value`, which is finite, just as Python writes it; how many bytes. */
size_t repo_float(double value, char out[REPO_LONGEST_FLOAT]);

/* --- Header and commit: _repo_commit.c --------------------------------------------------------------------------- */

typedef struct {
    unsigned version;
    RepoCursor did, rev;
    const uint8_t *tree; /* the CID of its root */
} RepoCommit;

/* The first root of a CAR's header; NULL, or what is wrong. */
const char *repo_read_header(RepoCursor header, RepoCursor *root);

/* The commit in a block that was found to be DAG-CBOR; NULL, or what it lacks. */
const char *repo_read_commit(RepoCursor block, RepoCommit *commit);

/* --- Parsing: _repo_parse.c ------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t car, block, blocks, depth, output;
    unsigned nesting; /* at most REPO_MOST_NESTING */
    bool verify, strip;
    uint64_t key[2]; /* of the hash table: random, and nobody's business */
    const RepoSha256 *sha256;
} RepoOptions;

/* The records of one collection: pieces of `names` and `data`. */
typedef struct {
    size_t name, name_size;
    size_t data, data_size;
    size_t count;
} RepoCollection;

typedef struct {
    RepoKind kind;
    size_t offset;
    char found[240]; /* what was found, and what was expected */

    /* If kind is REPO_OK. Nothing of it points into the CAR, which may have changed since. */
    char did[REPO_LONGEST_TEXT], rev[REPO_LONGEST_TEXT];
    size_t did_size, rev_size;
    unsigned version;
    RepoRow collections; /* RepoCollection, sorted by name */
    RepoRow names, data; /* bytes */
    uint64_t blocks, records, json_bytes, missing, bad_records, bad_keys, floats;
} RepoResult;

/* Parse a CAR. Whatever comes of it, the result is to be released. */
RepoKind repo_parse(const uint8_t *car, size_t size, const RepoOptions *options, RepoResult *result);
void repo_release(RepoResult *result);

#endif
