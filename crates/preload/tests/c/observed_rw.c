/* Readers-writer locks of every kind, taken in every way, for a recording to count: prints the
 * number of acquisitions by the mode's name in the recording, and of those of locks that are not
 * shared between processes. */
#include "check.h"

enum { SHARED = 3, KINDS = 4, THREADS = 4, ROUNDS = 200 };
static long reads, writes, own_reads, own_writes;

struct game {
	pthread_rwlock_t lock;
	int kind, arrived;
};

static void had(struct game *game, int writing, int code)
{
	IS(code, 0);
	__atomic_fetch_add(writing ? &writes : &reads, 1, __ATOMIC_RELAXED);
	if (game->kind != SHARED)
		__atomic_fetch_add(writing ? &own_writes : &own_reads, 1, __ATOMIC_RELAXED);
}

static void leave(struct game *game)
{
	IS(pthread_rwlock_unlock(&game->lock), 0);
}

static void make(struct game *game, int kind)
{
	pthread_rwlockattr_t attributes;
	pthread_rwlockattr_init(&attributes);
	if (kind == SHARED)
		pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	else
		pthread_rwlockattr_setkind_np(&attributes, kind);
	game->kind = kind;
	game->arrived = 0;
	IS(pthread_rwlock_init(&game->lock, &attributes), 0);
}

static void *take_turns(void *argument)
{
	struct game *game = argument;
	for (int round = 0; round < ROUNDS; round++) {
		int writing = round % 4 == 0;
		had(game, writing,
		    writing ? pthread_rwlock_wrlock(&game->lock) : pthread_rwlock_rdlock(&game->lock));
		if (round % 61 == 0)
			sched_yield();
		leave(game);
	}
	return NULL;
}

static void in_every_way(struct game *game)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 60000), wrong = {.tv_sec = 0, .tv_nsec = -1};
	had(game, 0, pthread_rwlock_tryrdlock(&game->lock));
	/* Again, from one place and from another. */
	had(game, 0, pthread_rwlock_tryrdlock(&game->lock));
	had(game, 0, pthread_rwlock_timedrdlock(&game->lock, &late));
	had(game, 0, pthread_rwlock_clockrdlock(&game->lock, CLOCK_REALTIME, &late));
	for (int left = 4; left > 0; left--)
		leave(game);
	had(game, 1, pthread_rwlock_trywrlock(&game->lock));
	/* A call that is refused at once is no wait. */
	IS(pthread_rwlock_rdlock(&game->lock), EDEADLK);
	IS(pthread_rwlock_wrlock(&game->lock), EDEADLK);
	leave(game);
	had(game, 1, pthread_rwlock_timedwrlock(&game->lock, &late));
	leave(game);
	had(game, 1, pthread_rwlock_clockwrlock(&game->lock, CLOCK_REALTIME, &late));
	leave(game);
	IS(pthread_rwlock_timedwrlock(&game->lock, &wrong), EINVAL);
	IS(pthread_rwlock_clockrdlock(&game->lock, 4711, &late), EINVAL);
}

static void *refused(void *argument)
{
	struct game *game = argument;
	struct timespec soon = in_ms(CLOCK_REALTIME, 20);
	IS(pthread_rwlock_trywrlock(&game->lock), EBUSY);
	IS(pthread_rwlock_timedwrlock(&game->lock, &soon), ETIMEDOUT);
	return NULL;
}

static void *wait_to_write(void *argument)
{
	struct game *game = argument;
	__atomic_store_n(&game->arrived, 1, __ATOMIC_RELAXED);
	had(game, 1, pthread_rwlock_wrlock(&game->lock));
	leave(game);
	return NULL;
}

static void *wait_to_read(void *argument)
{
	struct game *game = argument;
	__atomic_store_n(&game->arrived, 1, __ATOMIC_RELAXED);
	had(game, 0, pthread_rwlock_rdlock(&game->lock));
	leave(game);
	return NULL;
}

/* One thread waits for 100 ms, while the caller has the lock. */
static void made_to_wait(struct game *game, void *(*waiter)(void *))
{
	game->arrived = 0;
	pthread_t thread = start(waiter, game);
	while (!__atomic_load_n(&game->arrived, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(100000);
	leave(game);
	join(thread);
}

int main(void)
{
	watchdog();
	static struct game games[KINDS];
	for (int kind = 0; kind < KINDS; kind++) {
		struct game *game = &games[kind];
		pthread_t threads[THREADS];
		make(game, kind);
		in_every_way(game);
		for (int at = 0; at < THREADS; at++)
			threads[at] = start(take_turns, game);
		for (int at = 0; at < THREADS; at++)
			join(threads[at]);
		had(game, 0, pthread_rwlock_rdlock(&game->lock));
		IS(elsewhere(refused, game), 0);
		made_to_wait(game, wait_to_write);
		had(game, 1, pthread_rwlock_wrlock(&game->lock));
		made_to_wait(game, wait_to_read);
	}
	/* One lock within the other, in both orders, in whichever way: a danger. And a lock that is read
	 * twice comes after itself no more than a recursive mutex does. */
	had(&games[0], 0, pthread_rwlock_rdlock(&games[0].lock));
	had(&games[0], 0, pthread_rwlock_rdlock(&games[0].lock));
	had(&games[1], 1, pthread_rwlock_wrlock(&games[1].lock));
	leave(&games[0]);
	leave(&games[1]);
	leave(&games[0]);
	had(&games[1], 0, pthread_rwlock_rdlock(&games[1].lock));
	had(&games[0], 1, pthread_rwlock_wrlock(&games[0].lock));
	leave(&games[0]);
	leave(&games[1]);
	/* No danger: the third lock is another one by then. */
	had(&games[2], 0, pthread_rwlock_rdlock(&games[2].lock));
	had(&games[1], 0, pthread_rwlock_rdlock(&games[1].lock));
	leave(&games[1]);
	leave(&games[2]);
	make(&games[2], 2);
	had(&games[1], 0, pthread_rwlock_rdlock(&games[1].lock));
	had(&games[2], 0, pthread_rwlock_rdlock(&games[2].lock));
	leave(&games[2]);
	leave(&games[1]);
	printf("Read %ld\nWrite %ld\nOwnRead %ld\nOwnWrite %ld\n", reads, writes, own_reads, own_writes);
	return failures != 0;
}
