/* What the fuzzers call: parse one input as a repo, and abort if what comes out is not as promised.

   The first byte of an input chooses options, the second which request for memory fails (0: none); the CAR follows.
   Hashes are forged more often than checked: with them checked a changed byte is found before it can do any harm. */

#ifndef REPO_FUZZ
#define REPO_FUZZ /* the parser must be compiled so as well */
#endif
#include "../src/sanderling/formats/_repo.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* Of the sanitizers; not every compiler brings the header. */
size_t __sanitizer_get_current_allocated_bytes(void);
void __asan_poison_memory_region(const volatile void *start, size_t size);
void __asan_unpoison_memory_region(const volatile void *start, size_t size);

enum { VERIFY = 0xc0, KEEP = 0x01, PORTABLE = 0x02, FEW_BLOCKS = 0x18, FLAT = 0x14, SHORT = 0x24, SMALL = 0x28 };

/* Whether all bits of `option` are set. */
static bool
is_on(uint8_t byte, uint8_t option)
{
    return (byte & option) == option;
}

static unsigned refuse_in;

bool
fuzz_refuses_memory(void)
{
    return refuse_in != 0 && --refuse_in == 0;
}

/* A row has more room than was asked for, and what is written there by mistake would go unseen. */
void
fuzz_guards_behind(const RepoRow *row, size_t more, size_t size)
{
    const uint8_t *data = row->data;
    const size_t asked = (row->count + more) * size;
    if (data != NULL) {
        __asan_unpoison_memory_region(data, asked);
        __asan_poison_memory_region(data + asked, row->room * size - asked);
    }
}

/* [u16 size, rkey, u32 size, JSON]... */
static void
check_collection(const RepoCollection *collection, const uint8_t *at, uint64_t *json_bytes)
{
    const uint8_t *end = at + collection->data_size;
    size_t count = 0;
    for (; at < end; count++) {
        CHECK(end - at >= 2);
        const size_t rkey = at[0] | (size_t)at[1] << 8;
        at += 2;
        CHECK(rkey >= 1 && rkey <= 512 && (size_t)(end - at) >= rkey + 4);
        at += rkey;
        const size_t json = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        at += 4;
        CHECK(json >= 1 && json <= (size_t)(end - at));
        for (size_t i = 0; i < json; i++) {
            CHECK(at[i] >= 0x20);
        }
        at += json;
        *json_bytes += json;
    }
    CHECK(count == collection->count && count >= 1);
}

static void
check_repo(const RepoResult *result)
{
    const RepoCollection *collections = result->collections.data;
    const uint8_t *names = result->names.data;
    uint64_t records = 0, json_bytes = 0, bytes = 0;
    for (size_t i = 0; i < result->collections.count; i++) {
        const RepoCollection *one = &collections[i];
        CHECK(one->name + one->name_size <= result->names.count);
        CHECK(one->data + one->data_size <= result->data.count);
        if (i != 0) {
            const size_t before = one[-1].name_size;
            const int order = memcmp(names + one[-1].name, names + one->name,
                                     before < one->name_size ? before : one->name_size);
            CHECK(order < 0 || (order == 0 && before < one->name_size));
        }
        check_collection(one, (const uint8_t *)result->data.data + one->data, &json_bytes);
        records += one->count;
        bytes += one->data_size;
    }
    CHECK(records == result->records && json_bytes == result->json_bytes && bytes == result->data.count);
    CHECK(result->did_size >= 4 && (result->version == 2 || result->version == 3));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    RepoOptions options = {
        .car = 1 << 20, .block = 1 << 20, .blocks = 100000, .depth = 128, .output = 1 << 22, .nesting = 64,
        .verify = is_on(data[0], VERIFY), .strip = !is_on(data[0], KEEP), .key = {1, 2},
        .sha256 = is_on(data[0], PORTABLE) ? &repo_sha256_all[repo_sha256_count - 1] : repo_sha256_fastest(),
    };
    options.blocks = is_on(data[0], FEW_BLOCKS) ? 8 : options.blocks;
    options.depth = is_on(data[0], FLAT) ? 1 : options.depth;
    options.nesting = is_on(data[0], FLAT) ? 2 : options.nesting;
    options.output = is_on(data[0], SHORT) ? 700 : options.output;
    options.car = is_on(data[0], SMALL) ? 3000 : options.car;
    options.block = is_on(data[0], SMALL) ? 300 : options.block;
    refuse_in = data[1];
    const size_t before = __sanitizer_get_current_allocated_bytes();
    RepoResult result;
    const RepoKind kind = repo_parse(data + 2, size - 2, &options, &result);
    CHECK(kind == result.kind);
    if (kind == REPO_OK) {
        check_repo(&result);
    }
    else if (kind == REPO_NO_MEMORY) {
        CHECK(data[1] != 0);
    }
    else {
        CHECK(kind < REPO_KINDS && result.offset <= size - 2 && result.found[0] != '\0');
    }
    repo_release(&result);
    CHECK(__sanitizer_get_current_allocated_bytes() == before);
    return 0;
}
