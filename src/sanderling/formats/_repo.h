/* The parser of repos, without Python: what the module (_repo.c) and the fuzzer have in common.

   It is compared byte for byte with repo_python.py, which is shorter and says why things are as they are. What it adds:

   - Nothing here calls itself, and no size is believed before it was compared with what is left.
   - A number that bounds memory is read once and kept. Buffers may be changed by others while they are parsed (a mapped
     file, a bytearray); the result is then as good as the bytes were, and nothing is read or written out of bounds.
   - Memory comes from one function, repo_reserve, and each of its failures ends the parsing with REPO_NO_MEMORY. */

#ifndef SANDERLING_REPO_H
#define SANDERLING_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPO_CID 36            /* bytes of a CID that names a block */
#define REPO_CID_HEAD 4        /* of them, before the hash */
#define REPO_LONGEST_KEY 1024
#define REPO_MOST_NESTING 256

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

/* Make room for `more` items of `size` bytes; false if there is none to be had. */
bool repo_reserve(RepoRow *row, size_t more, size_t size);

/* Where a block is in the CAR. */
typedef struct {
    size_t start, size;
    bool visited; /* as a node of the tree */
} RepoBlock;

/* Blocks by CID: a hash table with open addressing. A slot is half a hash, and the number of a block from 1 up. */
typedef struct {
    const uint8_t *car;
    uint64_t key[2];
    RepoRow items; /* RepoBlock */
    uint64_t *slots;
    unsigned bits; /* the table has 2**bits slots */
} RepoBlocks;

bool repo_blocks_init(RepoBlocks *blocks, const uint8_t *car, size_t size, const uint64_t key[2]);
void repo_blocks_free(RepoBlocks *blocks);

/* Enter the block that stands at `start`, its CID right before it. One of the same CID is replaced. */
bool repo_blocks_put(RepoBlocks *blocks, size_t start, size_t size);

/* The half of a CID's hash by which it is found; asked early, it brings the slot nearer. */
uint32_t repo_blocks_hash(const RepoBlocks *blocks, const uint8_t *cid);

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

/* Read a head that is not of major type 7: its type and its argument, which must be in the shortest form. */
bool repo_cbor_head(RepoCursor *cursor, unsigned *major, uint64_t *argument);

/* Whether these bytes are a CIDv1, of whatever codec and hash. */
bool repo_is_cid(const uint8_t *data, size_t size);

/* An unsigned LEB128 number of at most nine bytes; NULL, or what is wrong with it. */
const char *repo_varint(RepoCursor *cursor, uint64_t *value);

typedef enum { REPO_JSON_OK, REPO_JSON_BAD, REPO_JSON_NO_MEMORY } RepoJson;

/* Append the JSON of one record to `out` (bytes) and add its floats. If it is bad, `out` has a piece of it. */
RepoJson repo_json(RepoCursor block, bool strip, unsigned nesting, RepoRow *out, uint64_t *floats);

/* The shortest text that is read as `value`, which is finite, as Python writes it. At most 25 bytes; how many. */
size_t repo_float(double value, uint8_t *out);

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
    char found[160];

    /* If kind is REPO_OK: */
    const uint8_t *did, *rev; /* in the CAR */
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
