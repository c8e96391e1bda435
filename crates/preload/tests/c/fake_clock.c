/* A library between a program and its clocks, like libfaketime. FAKE_CLOCK has three numbers: how
 * many seconds it is ahead, its rate in thousandths (0: it stands still), and after how many
 * milliseconds it jumps ahead by a day (0: never).
 *
 * With -DWRAPS it converts the deadlines of pthread_cond_timedwait, too, as libfaketime does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long long SECOND = 1000000000;

static long long real(clockid_t clock)
{
	struct timespec time;
	syscall(SYS_clock_gettime, clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static long long ahead_s, pace, jump_ms;
static long long begun[2];

static void begin(void)
{
	if (begun[1])
		return;
	const char *fake = getenv("FAKE_CLOCK");
	if (!fake || sscanf(fake, "%lld %lld %lld", &ahead_s, &pace, &jump_ms) != 3)
		abort();
	begun[0] = real(CLOCK_REALTIME);
	__atomic_store_n(&begun[1], real(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

static __attribute__((constructor)) void load(void)
{
	begin();
}

static long long fake(clockid_t clock)
{
	begin();
	long long from = begun[clock == CLOCK_MONOTONIC], passed = real(clock) - from;
	long long jumped = jump_ms && passed > jump_ms * 1000000 ? 86400 * SECOND : 0;
	/* The monotonic clock is never before its zero. */
	long long ahead = clock == CLOCK_MONOTONIC ? llabs(ahead_s) : ahead_s;
	return from + ahead * SECOND + passed * pace / 1000 + jumped;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return syscall(SYS_clock_gettime, clock, time);
	long long now = fake(clock);
	*time = (struct timespec){ .tv_sec = now / SECOND, .tv_nsec = now % SECOND };
	return 0;
}

#ifdef WRAPS
typedef int wait_function(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* For condition variables of the realtime clock. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	wait_function *next = (wait_function *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	long long left = until->tv_sec * SECOND + until->tv_nsec - fake(CLOCK_REALTIME);
	if (pace)
		left = left * 1000 / pace;
	long long at = real(CLOCK_REALTIME) + left;
	struct timespec converted = { .tv_sec = at / SECOND, .tv_nsec = at % SECOND };
	return next(cond, mutex, &converted);
}
#endif
