/* Memory that grows, and the table of blocks by CID. */

#include "_repo.h"

#include <stdlib.h>
#include <string.h>

#ifdef REPO_FUZZ
/* The fuzzer lets the n-th request for memory fail, to see that nothing breaks. */
extern bool fuzz_refuses_memory(void);
#else
#define fuzz_refuses_memory() false
#endif

bool
repo_reserve(RepoRow *row, size_t more, size_t size)
{
    if (more <= row->room - row->count) {
        return true;
    }
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
    uint32_t hash = (uint32_t)((v[0] ^ v[1] ^ v[2] ^ v[3]) >> 32);
    __builtin_prefetch(&blocks->slots[hash >> (32 - blocks->bits)]);
    return hash;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* Slots are found by the upper bits of a hash, so a hash of 32 bits serves 2**31 slots; three of four may be taken. */
enum { LEAST_BITS = 6, MOST_BITS = 31 };

static size_t
most_items(unsigned bits)
{
    return ((size_t)1 << bits) / 4 * 3;
}

static bool
set_bits(RepoBlocks *blocks, unsigned bits)
{
    uint64_t *slots = fuzz_refuses_memory() ? NULL : calloc((size_t)1 << bits, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    const size_t mask = ((size_t)1 << bits) - 1;
    for (size_t i = 0; blocks->slots != NULL && i < (size_t)1 << blocks->bits; i++) {
        if (blocks->slots[i] != 0) {
            size_t slot = blocks->slots[i] >> (64 - bits);
            while (slots[slot] != 0) {
                slot = (slot + 1) & mask;
            }
            slots[slot] = blocks->slots[i];
        }
    }
    free(blocks->slots);
    blocks->slots = slots;
    blocks->bits = bits;
    return true;
}

bool
repo_blocks_init(RepoBlocks *blocks, const uint8_t *car, size_t size, const uint64_t key[2])
{
    *blocks = (RepoBlocks){.car = car, .key = {key[0], key[1]}};
    /* A block and its frame are some 250 bytes in a usual repo; should they be smaller, the table grows. */
    unsigned bits = LEAST_BITS;
    while (bits < MOST_BITS && most_items(bits) < size / 200) {
        bits++;
    }
    return set_bits(blocks, bits);
}

void
repo_blocks_free(RepoBlocks *blocks)
{
    free(blocks->slots);
    free(blocks->items.data);
}

/* The slot of `cid`, or the free one where it belongs. */
static size_t
slot_of(const RepoBlocks *blocks, const uint8_t *cid, uint32_t hash)
{
    const RepoBlock *items = blocks->items.data;
    const size_t mask = ((size_t)1 << blocks->bits) - 1;
    size_t slot = hash >> (32 - blocks->bits);
    for (;; slot = (slot + 1) & mask) {
        const uint64_t taken = blocks->slots[slot];
        if (taken == 0) {
            return slot;
        }
        if (taken >> 32 == hash) {
            const RepoBlock *block = &items[(uint32_t)taken - 1];
            if (memcmp(blocks->car + block->start - REPO_CID, cid, REPO_CID) == 0) {
                return slot;
            }
        }
    }
}

bool
repo_blocks_put(RepoBlocks *blocks, size_t start, size_t size)
{
    const uint8_t *cid = blocks->car + start - REPO_CID;
    const uint32_t hash = repo_blocks_hash(blocks, cid);
    size_t slot = slot_of(blocks, cid, hash);
    RepoBlock block = {.start = start, .size = size};
    if (blocks->slots[slot] != 0) {
        ((RepoBlock *)blocks->items.data)[(uint32_t)blocks->slots[slot] - 1] = block;
        return true;
    }
    if (blocks->items.count == most_items(blocks->bits)) {
        if (blocks->bits == MOST_BITS || !set_bits(blocks, blocks->bits + 1)) {
            return false;
        }
        slot = slot_of(blocks, cid, hash);
    }
    if (!repo_reserve(&blocks->items, 1, sizeof(RepoBlock))) {
        return false;
    }
    ((RepoBlock *)blocks->items.data)[blocks->items.count++] = block;
    blocks->slots[slot] = (uint64_t)hash << 32 | blocks->items.count;
    return true;
}

RepoBlock *
repo_blocks_find(const RepoBlocks *blocks, const uint8_t *cid, uint32_t hash)
{
    const uint64_t taken = blocks->slots[slot_of(blocks, cid, hash)];
    return taken == 0 ? NULL : (RepoBlock *)blocks->items.data + ((uint32_t)taken - 1);
}
