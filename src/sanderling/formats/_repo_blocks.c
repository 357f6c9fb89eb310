/* Memory that grows, and the table of blocks by CID. */

#include "_repo.h"

#include <stdlib.h>
#include <string.h>

bool
repo_grow(RepoRow *row, size_t more, size_t size)
{
    const size_t most = (size_t)PTRDIFF_MAX / size;
    if (more > most - row->count || fuzz_refuses_memory()) {
        return false;
    }
    /* By half, so that what is unused stays small against the 4 times the CAR that a parse may take. */
    size_t room = row->room > most - row->room / 2 ? most : row->room + row->room / 2;
    if (room < row->count + more) {
        room = row->count + more;
    }
    void *data = realloc(row->data, room * size);
    if (data == NULL) {
        return false;
    }
    row->data = data;
    row->room = room;
    return true;
}

/* Slots are found by the upper bits of a hash; three of four may be taken. */
enum { HASH_BITS = 31, LEAST_BITS = 6, MOST_BITS = HASH_BITS };

/* --- SipHash-1-3 of a hash and its codec. Keyed, since whoever makes the blocks also makes their CIDs. ----------- */

static inline uint64_t
rotated(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated(v[1], 13) ^ v[0];
    v[3] = rotated(v[3], 16) ^ v[2];
    v[0] = rotated(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotated(v[1], 17) ^ v[2];
    v[3] = rotated(v[3], 21) ^ v[0];
    v[2] = rotated(v[2], 32);
}

uint32_t
repo_blocks_hash(const RepoBlocks *blocks, const uint8_t *cid)
{
    /* Of the head only the codec differs between CIDs that name blocks: the message is the hash and that byte. */
    uint64_t words[5];
    memcpy(words, cid + REPO_CID_HEAD, 32);
    words[4] = (uint64_t)33 << 56 | cid[1];
    uint64_t v[4] = {
        blocks->key[0] ^ 0x736f6d6570736575, blocks->key[1] ^ 0x646f72616e646f6d,
        blocks->key[0] ^ 0x6c7967656e657261, blocks->key[1] ^ 0x7465646279746573,
    };
    for (int i = 0; i < 5; i++) {
        v[3] ^= words[i];
        sip_round(v);
        v[0] ^= words[i];
    }
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    const uint32_t hash = (uint32_t)((v[0] ^ v[1] ^ v[2] ^ v[3]) >> (64 - HASH_BITS));
    __builtin_prefetch(&blocks->slots[hash >> (HASH_BITS - blocks->bits)]);
    return hash;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static size_t
most_taken(unsigned bits)
{
    return ((size_t)1 << bits) / 4 * 3;
}

static inline size_t
first_slot(const RepoBlocks *blocks, uint32_t hash)
{
    return hash >> (HASH_BITS - blocks->bits);
}

static inline size_t
next_slot(const RepoBlocks *blocks, size_t slot)
{
    return (slot + 1) & (((size_t)1 << blocks->bits) - 1);
}

static bool
set_bits(RepoBlocks *blocks, unsigned bits)
{
    RepoBlocks larger = *blocks;
    larger.bits = bits;
    larger.slots = fuzz_refuses_memory() ? NULL : calloc((size_t)1 << bits, sizeof(RepoBlock));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; blocks->slots != NULL && i < (size_t)1 << blocks->bits; i++) {
        if (blocks->slots[i].start != 0) {
            size_t slot = first_slot(&larger, blocks->slots[i].hash);
            while (larger.slots[slot].start != 0) {
                slot = next_slot(&larger, slot);
            }
            larger.slots[slot] = blocks->slots[i];
        }
    }
    free(blocks->slots);
    *blocks = larger;
    return true;
}

bool
repo_blocks_init(RepoBlocks *blocks, const uint8_t *car, size_t size, const uint64_t key[2])
{
    *blocks = (RepoBlocks){.car = car, .key = {key[0], key[1]}};
    /* A block and its frame are some 250 bytes in a usual repo; should they be smaller, the table grows. */
    unsigned bits = LEAST_BITS;
    while (bits < MOST_BITS && most_taken(bits) < size / 250) {
        bits++;
    }
    return set_bits(blocks, bits);
}

void
repo_blocks_free(RepoBlocks *blocks)
{
    free(blocks->slots);
}

/* The slot of `cid`, or the free one where it belongs. */
static RepoBlock *
slot_of(const RepoBlocks *blocks, const uint8_t *cid, uint32_t hash)
{
    for (size_t slot = first_slot(blocks, hash);; slot = next_slot(blocks, slot)) {
        RepoBlock *block = &blocks->slots[slot];
        if (block->start == 0
            || (block->hash == hash && memcmp(blocks->car + block->start - REPO_CID, cid, REPO_CID) == 0)) {
            return block;
        }
    }
}

bool
repo_blocks_put(RepoBlocks *blocks, size_t start, uint32_t size, uint32_t hash)
{
    const uint8_t *cid = blocks->car + start - REPO_CID;
    RepoBlock *block = slot_of(blocks, cid, hash);
    if (block->start == 0) {
        if (blocks->count == most_taken(blocks->bits)) {
            if (blocks->bits == MOST_BITS || !set_bits(blocks, blocks->bits + 1)) {
                return false;
            }
            block = slot_of(blocks, cid, hash);
        }
        blocks->count++;
    }
    *block = (RepoBlock){.start = start, .size = size, .hash = hash & 0x7fffffff};
    return true;
}

void
repo_blocks_near(const RepoBlocks *blocks, uint32_t hash)
{
    for (size_t slot = first_slot(blocks, hash); blocks->slots[slot].start != 0; slot = next_slot(blocks, slot)) {
        if (blocks->slots[slot].hash == hash) {
            /* Most records end within four lines of the cache. */
            const uint8_t *cid = blocks->car + blocks->slots[slot].start - REPO_CID;
            const size_t size = REPO_CID + blocks->slots[slot].size;
            for (size_t line = 0; line < size && line < 256; line += 64) {
                __builtin_prefetch(cid + line);
            }
            return;
        }
    }
}

RepoBlock *
repo_blocks_find(const RepoBlocks *blocks, const uint8_t *cid, uint32_t hash)
{
    RepoBlock *block = slot_of(blocks, cid, hash);
    return block->start == 0 ? NULL : block;
}
