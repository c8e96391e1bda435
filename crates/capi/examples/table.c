/* A table that many read and few change: a reader that misses an entry upgrades, writes, reads on.
 *
 *	cc table.c $(pkg-config --cflags --libs antiphon) -pthread -o table */
#include <antiphon.h>
#include <pthread.h>
#include <stdio.h>

enum { ENTRIES = 64, THREADS = 4, ROUNDS = 200 };

static antiphon_rwlock_t lock = ANTIPHON_RWLOCK_INIT;
static long squares[ENTRIES];
static int computed;

/* The square of `at`, computed once. -1 if there are too many readers. */
static long square(int at)
{
	long found;
	if (antiphon_rwlock_rdlock(&lock) != 0)
		return -1;
	found = squares[at];
	antiphon_rwlock_rdunlock(&lock);
	if (found)
		return found;

	antiphon_rwlock_uplock(&lock);
	if (squares[at] == 0) {
		antiphon_rwlock_upgrade(&lock);
		squares[at] = (long)at * at;
		computed++;
		antiphon_rwlock_downgrade(&lock);
	} else {
		antiphon_rwlock_downgrade_upgradable(&lock);
	}
	found = squares[at];
	antiphon_rwlock_rdunlock(&lock);
	return found;
}

static void *run(void *wrong)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int at = 1; at < ENTRIES; at++)
			if (square(at) != (long)at * at)
				*(int *)wrong = 1;
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int wrong[THREADS] = { 0 }, sum = 0;
	for (int at = 0; at < THREADS; at++)
		if (pthread_create(&threads[at], NULL, run, &wrong[at]) != 0)
			return 1;
	for (int at = 0; at < THREADS; at++) {
		pthread_join(threads[at], NULL);
		sum += wrong[at];
	}
	printf("%d computed, %d wrong\n", computed, sum);
	return 0;
}
