/* Gives one process a wrong clock: LD_PRELOAD this, with SKEWED_CLOCK naming a file of two doubles.
 *
 * The first is how many seconds the time of day is ahead; it may be written anew while the process runs, as somebody sets
 * a clock. The second is how fast all of its clocks run (1: as they should), as a bad quartz has it. Clocks that count
 * from some moment (CLOCK_MONOTONIC, CLOCK_BOOTTIME) cannot be set, here as in the kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define CLOCKS 12
#define BILLION 1000000000LL

static const volatile double *skew;         /* ahead, pace */
static long long begun[CLOCKS];             /* of each clock when the process was started */

static long long real(clockid_t clock)
{
    struct timespec now = {0, 0};
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * BILLION + now.tv_nsec;
}

static int is_day(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

static int is_skewed(clockid_t clock)
{
    return skew && clock >= 0 && clock < CLOCKS && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SKEWED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, 2 * sizeof(double), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    for (clockid_t clock = 0; clock < CLOCKS; clock++) begun[clock] = real(clock);
    skew = mapped;
}

static struct timespec spec(long long time) { return (struct timespec){time / BILLION, time % BILLION}; }

static long long shown(clockid_t clock)
{
    long long now = real(clock);
    if (!is_skewed(clock)) return now;
    now = begun[clock] + (long long)((double)(now - begun[clock]) * skew[1]);
    return is_day(clock) ? now + (long long)(skew[0] * 1e9) : now;
}

/* When a moment of the wrong clock is by the right one, for those who wait until then. */
static struct timespec meant(clockid_t clock, const struct timespec *until)
{
    if (!is_skewed(clock)) return *until;
    long long time = until->tv_sec * BILLION + until->tv_nsec;
    if (is_day(clock)) time -= (long long)(skew[0] * 1e9);
    time = begun[clock] + (long long)((double)(time - begun[clock]) / skew[1]);
    return spec(time < 0 ? 0 : time);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!is_skewed(clock)) return (int)syscall(SYS_clock_gettime, clock, now);
    *now = spec(shown(clock));
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec time = spec(shown(CLOCK_REALTIME));
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now)
{
    time_t seconds = spec(shown(CLOCK_REALTIME)).tv_sec;
    if (now) *now = seconds;
    return seconds;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    struct timespec moment = flags & TIMER_ABSTIME ? meant(clock, until) : *until;
    return syscall(SYS_clock_nanosleep, clock, flags, &moment, left) ? errno : 0;
}

/* The kernel of a machine counts how long somebody waits by the same quartz. */
int epoll_pwait(int file, struct epoll_event *events, int most, int milliseconds, const sigset_t *mask)
{
    if (skew && milliseconds > 0) milliseconds = (int)((double)milliseconds / skew[1]) + 1;
    return (int)syscall(SYS_epoll_pwait, file, events, most, milliseconds, mask, (size_t)8);
}

int epoll_wait(int file, struct epoll_event *events, int most, int milliseconds)
{
    return epoll_pwait(file, events, most, milliseconds, NULL);
}

/* A condition knows its clock, and we do not; but a time of day is a large number. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) *(void **)&wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec moment = meant(until->tv_sec > BILLION ? CLOCK_REALTIME : CLOCK_MONOTONIC, until);
    return wait(condition, mutex, &moment);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until)
{
    static int (*wait)(sem_t *, clockid_t, const struct timespec *);
    if (!wait) *(void **)&wait = dlsym(RTLD_NEXT, "sem_clockwait");
    struct timespec moment = meant(clock, until);
    return wait(semaphore, clock, &moment);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
    static int (*wait)(sem_t *, const struct timespec *);
    if (!wait) *(void **)&wait = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec moment = meant(CLOCK_REALTIME, until);
    return wait(semaphore, &moment);
}
