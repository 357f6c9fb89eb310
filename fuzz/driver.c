/* A fuzzer for where there is no libFuzzer: changes the files of a corpus at random, always the same from one seed.

       driver CORPUS SECONDS [SEED [RUNS]]    change and parse until the time or the runs are over
       driver FILE...                         parse these, as they are

   An input that breaks something is written to crash-repo in the current folder, to be parsed again. */

#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of the sanitizers; not every compiler brings the header. */
void __sanitizer_set_death_callback(void (*callback)(void));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST = 1 << 17, MOST_FILES = 4096, SECONDS_PER_INPUT = 20 };

typedef struct {
    uint8_t *data;
    size_t size;
} Input;

static Input files[MOST_FILES];
static size_t file_count;
static Input current;
static uint64_t state;

static uint64_t
draw(uint64_t below)
{
    /* xorshift64*: good enough to choose bytes. */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return below == 0 ? 0 : (state * 0x2545f4914f6cdd1d >> 16) % below;
}

static void
save_current(void)
{
    FILE *file = fopen("crash-repo", "wb");
    if (file != NULL) {
        fwrite(current.data, 1, current.size, file);
        fclose(file);
        fprintf(stderr, "the input is in crash-repo (%zu bytes)\n", current.size);
    }
}

static void
on_alarm(int signal_number)
{
    (void)signal_number;
    static const char text[] = "an input took too long\n";
    (void)!write(2, text, sizeof(text) - 1);
    abort();
}

/* In memory of just its size, so that a byte read behind it is seen. */
static void
run(const uint8_t *data, size_t size)
{
    current = (Input){malloc(size == 0 ? 1 : size), size};
    if (current.data == NULL) {
        abort();
    }
    memcpy(current.data, data, size);
    alarm(SECONDS_PER_INPUT);
    LLVMFuzzerTestOneInput(current.data, size);
    free(current.data);
}

static bool
read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || file_count == MOST_FILES) {
        return false;
    }
    uint8_t *data = malloc(LARGEST);
    const size_t size = data == NULL ? 0 : fread(data, 1, LARGEST, file);
    fclose(file);
    files[file_count++] = (Input){data, size};
    return data != NULL;
}

static int
by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* In the order of names, whatever the folder's own is: the same seed must do the same everywhere. */
static bool
read_folder(const char *folder)
{
    static char *paths[MOST_FILES];
    size_t count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && count < MOST_FILES && (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] != '.') {
            const size_t room = strlen(folder) + strlen(entry->d_name) + 2;
            char *path = malloc(room);
            if (path == NULL) {
                abort();
            }
            snprintf(path, room, "%s/%s", folder, entry->d_name);
            paths[count++] = path;
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    qsort(paths, count, sizeof(paths[0]), by_text);
    bool good = count != 0;
    for (size_t i = 0; i < count; i++) {
        good = read_file(paths[i]) && good;
        free(paths[i]);
    }
    return good;
}

/* Heads, lengths and bytes that mean something to a CAR, to DAG-CBOR or to UTF-8. */
static const uint8_t TELLING[] = {
    0x00, 0x01, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1f, 0x20, 0x3b, 0x40, 0x57, 0x58, 0x59, 0x5b, 0x60, 0x63, 0x78, 0x7b,
    0x7f, 0x80, 0x81, 0x98, 0x9a, 0x9b, 0x9f, 0xa0, 0xa1, 0xa2, 0xa4, 0xbb, 0xc2, 0xd8, 0x2a, 0xe0, 0xed, 0xf0, 0xf4,
    0xf5, 0xf6, 0xf7, 0xf9, 0xfb, 0xff, '"', '\\', '/', '.',
};

/* Change `data` in one way; its new size. */
static size_t
change(uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const size_t at = (size_t)draw(size), most = size - at;
    const size_t length = (size_t)draw(draw(8) == 0 || most < 40 ? most : 40);
    const size_t other = (size_t)draw(size - length + 1);
    const Input *donor = &files[draw(file_count)];
    switch (draw(9)) {
    case 0:
        data[at] ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        data[at] = (uint8_t)draw(256);
        break;
    case 2:
        data[at] = TELLING[draw(sizeof(TELLING))];
        break;
    case 3: /* a number that lies */
        for (size_t i = 0; i < 8 && i < most; i++) {
            data[at + i] = (uint8_t)(draw(2) ? 0xff : draw(256));
        }
        break;
    case 4: /* a piece of it elsewhere */
        memmove(data + other, data + at, length);
        break;
    case 5: /* a piece less */
        memmove(data + at, data + at + length, most - length);
        return size - length;
    case 6: /* a piece twice */
        if (size + length <= LARGEST) {
            memmove(data + at + length, data + at, most);
            return size + length;
        }
        break;
    case 7: /* cut off */
        return draw(4) == 0 ? at : size;
    default: /* a piece of another */
        if (donor->size > 2) {
            const size_t from = (size_t)draw(donor->size);
            const size_t count = donor->size - from < length ? donor->size - from : length;
            memcpy(data + at, donor->data + from, count);
        }
    }
    return size;
}

static uint64_t
fuzz(time_t seconds, uint64_t most)
{
    static uint8_t data[LARGEST];
    const time_t end = time(NULL) + seconds;
    uint64_t runs = 0;
    for (; runs < most && time(NULL) < end; runs++) {
        const Input *base = &files[draw(file_count)];
        size_t size = base->size;
        memcpy(data, base->data, size);
        for (uint64_t i = draw(6) + 1; i != 0; i--) {
            size = change(data, size);
        }
        if (size > 2) {
            data[0] = (uint8_t)draw(256);
            data[1] = draw(4) == 0 ? (uint8_t)draw(40) : 0;
        }
        run(data, size);
    }
    return runs;
}

int
main(int count, char **arguments)
{
    struct stat found;
    __sanitizer_set_death_callback(save_current);
    signal(SIGALRM, on_alarm);
    if (count < 2 || stat(arguments[1], &found) != 0) {
        fprintf(stderr, "usage: %s CORPUS SECONDS [SEED [RUNS]], or FILE...\n", arguments[0]);
        return 2;
    }
    if (!S_ISDIR(found.st_mode)) {
        for (int i = 1; i < count; i++) {
            if (!read_file(arguments[i])) {
                perror(arguments[i]);
                return 2;
            }
        }
    }
    else if (!read_folder(arguments[1])) {
        fprintf(stderr, "%s: no files that can be read, or more than %d\n", arguments[1], MOST_FILES);
        return 2;
    }
    for (size_t i = 0; i < file_count; i++) {
        run(files[i].data, files[i].size);
    }
    uint64_t runs = 0;
    if (S_ISDIR(found.st_mode)) {
        const uint64_t seed = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
        state = seed * 2 + 1;
        runs = fuzz(count > 2 ? atoi(arguments[2]) : 10, count > 4 ? strtoull(arguments[4], NULL, 10) : UINT64_MAX);
    }
    /* The state that the draws have come to stands for all that was done. */
    printf("%zu files and %llu changes of them parsed, nothing broke (%016llx)\n", file_count,
           (unsigned long long)runs, (unsigned long long)state);
    return 0;
}
