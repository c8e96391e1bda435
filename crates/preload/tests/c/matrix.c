/* Every kind of condition variable with every kind of mutex: turns, a broadcast, deadlines, a
 * waiter that is cancelled, one that doesn't own the mutex, one that holds it twice, an owner that
 * dies, a mutex that is destroyed too early; and two processes, where both objects are shared.
 * After each wait the waiter owns the mutex: `__owner`, at offset 8, is the thread. */
#include "check.h"

enum { NORMAL, ADAPTIVE, RECURSIVE, ERRORCHECK, ROBUST, INHERIT, SHARED, SHARED_ROBUST };
enum { SHARED_INHERIT = SHARED_ROBUST + 1, MUTEXES, CONDS = 2, ROUNDS = 200, MANY = 4 };
static const char *const names[MUTEXES] = {"normal", "adaptive", "recursive", "errorcheck",
					   "robust", "inherit",  "shared",    "shared robust",
					   "shared inherit"};

struct game {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int turn, waiting, go;
};

static struct game *make(int shared_cond, int kind)
{
	struct game *game = shared_memory(sizeof *game);
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	if (kind < ROBUST)
		pthread_mutexattr_settype(&attributes, (int[]){PTHREAD_MUTEX_NORMAL,
							      PTHREAD_MUTEX_ADAPTIVE_NP,
							      PTHREAD_MUTEX_RECURSIVE,
							      PTHREAD_MUTEX_ERRORCHECK}[kind]);
	if (kind == ROBUST || kind == SHARED_ROBUST)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (kind == INHERIT || kind == SHARED_INHERIT)
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (kind >= SHARED)
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	IS(pthread_mutex_init(&game->mutex, &attributes), 0);
	pthread_condattr_t condattr;
	pthread_condattr_init(&condattr);
	pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC);
	if (shared_cond)
		pthread_condattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED);
	IS(pthread_cond_init(&game->cond, &condattr), 0);
	return game;
}

static int owner(struct game *game)
{
	return *(volatile int *)((char *)&game->mutex + 8);
}

static void play(struct game *game, int me)
{
	for (int round = 0; round < ROUNDS; round++) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		while (game->turn != me) {
			struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);
			IS(round % 2 ? pthread_cond_wait(&game->cond, &game->mutex)
				     : pthread_cond_timedwait(&game->cond, &game->mutex, &late),
			   0);
			IS(owner(game), gettid());
		}
		game->turn = !me;
		IS(pthread_cond_signal(&game->cond), 0);
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
}

static void *second(void *game)
{
	play(game, 1);
	return NULL;
}

static void *await(void *argument)
{
	struct game *game = argument;
	IS(pthread_mutex_lock(&game->mutex), 0);
	game->waiting++;
	while (!game->go) {
		IS(pthread_cond_wait(&game->cond, &game->mutex), 0);
		IS(owner(game), gettid());
	}
	game->waiting--;
	IS(pthread_mutex_unlock(&game->mutex), 0);
	return NULL;
}

static void threads(struct game *game)
{
	pthread_t thread = start(second, game);
	play(game, 0);
	join(thread);
	pthread_t many[MANY];
	for (int at = 0; at < MANY; at++)
		many[at] = start(await, game);
	for (int all = 0; !all; sched_yield()) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		all = game->waiting == MANY;
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	IS(pthread_mutex_lock(&game->mutex), 0);
	game->go = 1;
	IS(pthread_cond_broadcast(&game->cond), 0);
	IS(pthread_mutex_unlock(&game->mutex), 0);
	for (int at = 0; at < MANY; at++)
		join(many[at]);
	IS(game->waiting, 0);

	IS(pthread_mutex_lock(&game->mutex), 0);
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 10);
	IS(pthread_cond_timedwait(&game->cond, &game->mutex, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	IS(owner(game), gettid());
	soon = in_ms(CLOCK_REALTIME, 10);
	IS(pthread_cond_clockwait(&game->cond, &game->mutex, CLOCK_REALTIME, &soon), ETIMEDOUT);
	IS(owner(game), gettid());
	IS(pthread_mutex_unlock(&game->mutex), 0);
	IS(owner(game), 0);
}

/* A thread that destroys a mutex that a waiter will lock again is refused, but for a robust one. */
static void refuses_to_go(struct game *game, int kind)
{
	for (int waits = 0; !waits; sched_yield()) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		waits = game->waiting;
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	if (kind != ROBUST && kind != SHARED_ROBUST)
		IS(pthread_mutex_destroy(&game->mutex), EBUSY);
	IS(pthread_mutex_lock(&game->mutex), 0);
	game->go = 1;
	IS(pthread_cond_broadcast(&game->cond), 0);
	if (kind != ROBUST && kind != SHARED_ROBUST)
		IS(pthread_mutex_destroy(&game->mutex), EBUSY);
	IS(pthread_mutex_unlock(&game->mutex), 0);
}

static void used_by_a_waiter(struct game *game, int kind)
{
	game->go = 0;
	pthread_t thread = start(await, game);
	refuses_to_go(game, kind);
	join(thread);
}

/* A waiter that is cancelled has the mutex again when its cleanups run. */
static void clean(void *argument)
{
	struct game *game = argument;
	IS(owner(game), gettid());
	game->waiting = -1;
	IS(pthread_mutex_unlock(&game->mutex), 0);
}

static void *wait_for_ever(void *argument)
{
	struct game *game = argument;
	IS(pthread_mutex_lock(&game->mutex), 0);
	pthread_cleanup_push(clean, game);
	game->waiting = 1;
	for (;;)
		pthread_cond_wait(&game->cond, &game->mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancelled(struct game *game)
{
	pthread_t thread = start(wait_for_ever, game);
	for (int waits = 0; !waits; sched_yield()) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		waits = game->waiting;
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	pthread_cancel(thread);
	YES(join(thread) == PTHREAD_CANCELED);
	IS(game->waiting, -1);
	game->waiting = 0;
}

static void *trylock(void *mutex)
{
	return (void *)(long)pthread_mutex_trylock(mutex);
}

static void owners_only(struct game *game, int kind)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
	int asks = kind == RECURSIVE || kind == ERRORCHECK || kind == ROBUST || kind == SHARED_ROBUST;
	if (asks) {
		IS(pthread_cond_wait(&game->cond, &game->mutex), EPERM);
		IS(pthread_cond_timedwait(&game->cond, &game->mutex, &soon), EPERM);
		IS(pthread_cond_clockwait(&game->cond, &game->mutex, CLOCK_MONOTONIC, &soon), EPERM);
	}
	if (kind == RECURSIVE) {
		/* Held twice, it is released once: no other thread gets it during the wait. */
		IS(pthread_mutex_lock(&game->mutex), 0);
		IS(pthread_mutex_lock(&game->mutex), 0);
		IS(pthread_cond_timedwait(&game->cond, &game->mutex, &soon), ETIMEDOUT);
		IS(elsewhere(trylock, &game->mutex), EBUSY);
		IS(pthread_mutex_unlock(&game->mutex), 0);
		IS(elsewhere(trylock, &game->mutex), EBUSY);
		IS(owner(game), gettid());
		IS(pthread_mutex_unlock(&game->mutex), 0);
		IS(pthread_mutex_unlock(&game->mutex), EPERM);
	}
}

static void *die_with(void *argument)
{
	struct game *game = argument;
	IS(pthread_mutex_lock(&game->mutex), 0);
	game->go = 1;
	IS(pthread_cond_broadcast(&game->cond), 0);
	return NULL;
}

/* A waiter whose robust mutex is left behind is told so. */
static void owner_dies(struct game *game)
{
	game->go = 0;
	IS(pthread_mutex_lock(&game->mutex), 0);
	pthread_t thread = start(die_with, game);
	int code = 0;
	while (!game->go && !code)
		code = pthread_cond_wait(&game->cond, &game->mutex);
	IS(code, EOWNERDEAD);
	IS(pthread_mutex_consistent(&game->mutex), 0);
	IS(pthread_mutex_unlock(&game->mutex), 0);
	join(thread);
}

int main(void)
{
	watchdog();
	for (int shared_cond = 0; shared_cond < CONDS; shared_cond++)
		for (int kind = 0; kind < MUTEXES; kind++) {
			int before = failures;
			struct game *game = make(shared_cond, kind);
			threads(game);
			cancelled(game);
			owners_only(game, kind);
			used_by_a_waiter(game, kind);
			if (kind == ROBUST || kind == SHARED_ROBUST)
				owner_dies(game);
			IS(pthread_cond_destroy(&game->cond), 0);
			IS(pthread_mutex_destroy(&game->mutex), 0);
			if (failures != before)
				fprintf(stderr, "%s cond, %s mutex\n",
					shared_cond ? "shared" : "own", names[kind]);
		}
	/* Two processes. */
	for (int kind = SHARED; kind < MUTEXES; kind++) {
		struct game *game = make(1, kind);
		pid_t child = fork();
		if (child == 0) {
			play(game, 1);
			_exit(failures != 0);
		}
		play(game, 0);
		IS(exit_of(child), 0);
		child = fork();
		if (child == 0) {
			await(game);
			_exit(failures != 0);
		}
		refuses_to_go(game, kind);
		IS(exit_of(child), 0);
		IS(pthread_cond_destroy(&game->cond), 0);
		IS(pthread_mutex_destroy(&game->mutex), 0);
	}
	return failures != 0;
}
