/* Policies: chosen by name, at any time. */
#include "check.h"

#include <antiphon.h>

enum { THREADS = 4, EACH = 5000 };

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_rwlock_t lock = ANTIPHON_RWLOCK_INIT;
static antiphon_spin_t spin = ANTIPHON_SPIN_INIT;
static const char *const names[] = { "priority", "none", "distance", "priority+none", "numa" };
enum { NAMES = sizeof names / sizeof *names };
static long count, spun, written;
static int over;

static void *add(void *number)
{
	int round;
	IS(antiphon_set_priority(*(int *)number), 0);
	for (round = 0; round < EACH; round++) {
		antiphon_mutex_lock(&mutex);
		count++;
		antiphon_mutex_unlock(&mutex);
		antiphon_rwlock_wrlock(&lock);
		written++;
		antiphon_rwlock_wrunlock(&lock);
		antiphon_spin_lock(&spin);
		spun++;
		antiphon_spin_unlock(&spin);
	}
	return NULL;
}

static void *change(void *unused)
{
	unsigned at;
	(void)unused;
	for (at = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); at++) {
		IS(antiphon_mutex_set_policy(&mutex, names[at % NAMES]), 0);
		IS(antiphon_rwlock_set_policy(&lock, names[at % NAMES]), 0);
		IS(antiphon_spin_set_policy(&spin, names[at % NAMES]), 0);
		usleep(50);
	}
	return NULL;
}

static void refusals(void)
{
	static const antiphon_mutex_t zero = ANTIPHON_MUTEX_INIT;
	static const antiphon_rwlock_t free_lock = ANTIPHON_RWLOCK_INIT;
	IS(antiphon_mutex_set_policy(&mutex, ""), EINVAL);
	IS(antiphon_mutex_set_policy(&mutex, "Numa"), EINVAL);
	IS(antiphon_mutex_set_policy(&mutex, "none+numa"), EINVAL);
	IS(antiphon_mutex_set_policy(&mutex, "\xff"), EINVAL);
	IS(antiphon_spin_set_policy(&spin, "fastest"), EINVAL);
	IS(memcmp(&mutex, &zero, sizeof zero), 0);
	IS(antiphon_mutex_set_policy(&mutex, "priority"), 0);
	YES(memcmp(&mutex, &zero, sizeof zero) != 0);
	IS(antiphon_mutex_trylock(&mutex), 0);
	antiphon_mutex_unlock(&mutex);
	IS(antiphon_mutex_set_policy(&mutex, "numa"), 0);
	IS(memcmp(&mutex, &zero, sizeof zero), 0);
	IS(antiphon_rwlock_set_policy(&lock, "fastest"), EINVAL);
	IS(memcmp(&lock, &free_lock, sizeof lock), 0);
	IS(antiphon_rwlock_set_policy(&lock, "none"), 0);
	YES(memcmp(&lock, &free_lock, sizeof lock) != 0);
	IS(antiphon_rwlock_set_policy(&lock, "numa"), 0);
	IS(memcmp(&lock, &free_lock, sizeof lock), 0);
	IS(antiphon_set_priority(-2), EINVAL);
	IS(antiphon_set_priority(256), EINVAL);
}

int main(void)
{
	int at, priorities[THREADS] = { -1, 0, 100, 255 };
	pthread_t threads[THREADS], changer;
	watchdog();
	refusals();
	changer = start(change, NULL);
	for (at = 0; at < THREADS; at++)
		threads[at] = start(add, &priorities[at]);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	join(changer);
	IS(count, THREADS * EACH);
	IS(written, THREADS * EACH);
	IS(spun, THREADS * EACH);
	return failures != 0;
}
