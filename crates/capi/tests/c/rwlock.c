/* The readers-writer lock: three ways to be in, the ways between them, each error. */
#include "check.h"

#include <antiphon.h>

enum { THREADS = 4, EACH = 5000 };

static antiphon_rwlock_t lock = ANTIPHON_RWLOCK_INIT;
static long left, right;

/* The state of the lock for another thread: bits of the ways in which it could have had it. */
enum { READ = 1, UP = 2, WRITE = 4 };

static void *look(void *unused)
{
	long seen = 0;
	(void)unused;
	if (antiphon_rwlock_tryrdlock(&lock) == 0) {
		seen |= READ;
		antiphon_rwlock_rdunlock(&lock);
	}
	if (antiphon_rwlock_tryuplock(&lock) == 0) {
		seen |= UP;
		antiphon_rwlock_upunlock(&lock);
	}
	if (antiphon_rwlock_trywrlock(&lock) == 0) {
		seen |= WRITE;
		antiphon_rwlock_wrunlock(&lock);
	}
	return (void *)seen;
}

static void modes(void)
{
	IS(elsewhere(look, NULL), READ | UP | WRITE);
	IS(antiphon_rwlock_destroy(&lock), 0);

	IS(antiphon_rwlock_rdlock(&lock), 0);
	IS(elsewhere(look, NULL), READ | UP);
	IS(antiphon_rwlock_destroy(&lock), EBUSY);
	IS(antiphon_rwlock_rdlock_again(&lock), 0);
	antiphon_rwlock_rdunlock(&lock);
	antiphon_rwlock_rdunlock(&lock);

	antiphon_rwlock_wrlock(&lock);
	IS(elsewhere(look, NULL), 0);
	antiphon_rwlock_downgrade_to_upgradable(&lock);
	IS(elsewhere(look, NULL), READ);
	antiphon_rwlock_upgrade(&lock);
	IS(elsewhere(look, NULL), 0);
	antiphon_rwlock_downgrade(&lock);
	IS(elsewhere(look, NULL), READ | UP);
	IS(antiphon_rwlock_tryuplock(&lock), 0);
	IS(antiphon_rwlock_tryupgrade(&lock), EBUSY);
	antiphon_rwlock_rdunlock(&lock);
	IS(antiphon_rwlock_tryupgrade(&lock), 0);
	antiphon_rwlock_wrunlock(&lock);

	antiphon_rwlock_uplock(&lock);
	antiphon_rwlock_downgrade_upgradable(&lock);
	IS(elsewhere(look, NULL), READ | UP);
	antiphon_rwlock_rdunlock(&lock);
	IS(elsewhere(look, NULL), READ | UP | WRITE);
}

static void *time_out(void *unused)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 3);
	(void)unused;
	IS(antiphon_rwlock_timedrdlock(&lock, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	soon = in_ms(CLOCK_REALTIME, 3);
	IS(antiphon_rwlock_timedwrlock(&lock, CLOCK_REALTIME, &soon), ETIMEDOUT);
	YES(passed(CLOCK_REALTIME, &soon));
	soon = in_ms(CLOCK_MONOTONIC, 3);
	IS(antiphon_rwlock_timeduplock(&lock, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	return NULL;
}

static void times(void)
{
	struct timespec past = { 0, 0 }, odd = { 0, 1000000000 };
	IS(antiphon_rwlock_timedrdlock(&lock, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_rwlock_timedwrlock(&lock, 99, &past), EINVAL);
	IS(antiphon_rwlock_timeduplock(&lock, 99, &past), EINVAL);
	IS(antiphon_rwlock_timedrdlock(&lock, CLOCK_MONOTONIC, &past), 0);
	IS(antiphon_rwlock_timeduplock(&lock, CLOCK_MONOTONIC, &past), 0);
	IS(antiphon_rwlock_timedupgrade(&lock, 99, &past), EINVAL);
	IS(antiphon_rwlock_timedupgrade(&lock, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	antiphon_rwlock_rdunlock(&lock);
	IS(antiphon_rwlock_timedupgrade(&lock, CLOCK_MONOTONIC, &past), 0);
	elsewhere(time_out, NULL);
	antiphon_rwlock_wrunlock(&lock);
	IS(antiphon_rwlock_timedwrlock(&lock, CLOCK_REALTIME, &past), 0);
	antiphon_rwlock_wrunlock(&lock);
}

static void *read_and_write(void *unused)
{
	int round;
	(void)unused;
	for (round = 0; round < EACH; round++) {
		IS(antiphon_rwlock_rdlock(&lock), 0);
		IS(left, right);
		antiphon_rwlock_rdunlock(&lock);
		if (round % 4 == 0) {
			antiphon_rwlock_wrlock(&lock);
			left++;
			right++;
			antiphon_rwlock_wrunlock(&lock);
		} else if (round % 4 == 1) {
			long seen;
			antiphon_rwlock_uplock(&lock);
			seen = left;
			antiphon_rwlock_upgrade(&lock);
			left = right = seen + 1;
			antiphon_rwlock_wrunlock(&lock);
		}
	}
	return NULL;
}

static void exclusion(void)
{
	pthread_t threads[THREADS];
	int at;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(read_and_write, NULL);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(left, THREADS * EACH / 2);
	IS(antiphon_rwlock_destroy(&lock), 0);
}

static void *write_once(void *unused)
{
	(void)unused;
	antiphon_rwlock_wrlock(&lock);
	antiphon_rwlock_wrunlock(&lock);
	return NULL;
}

/* A thread that reads already gets in again beside a writer that waits; others don't. */
static void again(void)
{
	pthread_t writer;
	struct timespec soon;
	IS(antiphon_rwlock_rdlock(&lock), 0);
	writer = start(write_once, NULL);
	while (antiphon_rwlock_tryrdlock(&lock) == 0) {
		antiphon_rwlock_rdunlock(&lock);
		usleep(1000);
	}
	IS(antiphon_rwlock_tryrdlock(&lock), EBUSY);
	soon = in_ms(CLOCK_MONOTONIC, 3);
	IS(antiphon_rwlock_timedrdlock(&lock, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	IS(antiphon_rwlock_rdlock_again(&lock), 0);
	antiphon_rwlock_rdunlock(&lock);
	antiphon_rwlock_rdunlock(&lock);
	join(writer);
}

/* More readers than the lock can count are a bug, and an error. */
static void too_many(void)
{
	static antiphon_rwlock_t full = ANTIPHON_RWLOCK_INIT;
	long readers = 0, at;
	while (antiphon_rwlock_rdlock(&full) == 0)
		readers++;
	YES(readers > 1000000);
	IS(antiphon_rwlock_rdlock(&full), EAGAIN);
	IS(antiphon_rwlock_rdlock_again(&full), EAGAIN);
	IS(antiphon_rwlock_tryrdlock(&full), EAGAIN);
	for (at = 0; at < readers; at++)
		antiphon_rwlock_rdunlock(&full);
	IS(antiphon_rwlock_destroy(&full), 0);
}

int main(void)
{
	watchdog();
	modes();
	times();
	again();
	exclusion();
	too_many();
	return failures != 0;
}
