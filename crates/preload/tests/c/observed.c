/* Locks of every kind, taken in every way, for a recording to count: prints the number of
 * acquisitions by the kind's name in the recording. With an argument it does so once; without, it
 * also forks a child that does the same, and executes itself with one. */
#include "check.h"

enum { NORMAL, ADAPTIVE, RECURSIVE, ERRORCHECK, ROBUST, INHERIT, SHARED, KINDS };
enum { THREADS = 4, ROUNDS = 200 };
static const char *const names[KINDS] = {"Mutex",   "Adaptive", "Recursive", "ErrorCheck",
					 "Foreign", "Foreign",  "Foreign"};

static struct { long had[KINDS], spun; } *counts;

struct game {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int kind, arrived, go;
};

static void count(struct game *game)
{
	__atomic_fetch_add(&counts->had[game->kind], 1, __ATOMIC_RELAXED);
}

static void had(struct game *game, int code)
{
	IS(code, 0);
	count(game);
}

static void make(struct game *game, int kind)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	if (kind < ROBUST)
		pthread_mutexattr_settype(&attributes, (int[]){PTHREAD_MUTEX_NORMAL,
							      PTHREAD_MUTEX_ADAPTIVE_NP,
							      PTHREAD_MUTEX_RECURSIVE,
							      PTHREAD_MUTEX_ERRORCHECK}[kind]);
	if (kind == ROBUST)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (kind == INHERIT)
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (kind == SHARED)
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	memset(game, 0, sizeof *game);
	game->kind = kind;
	IS(pthread_mutex_init(&game->mutex, &attributes), 0);
	IS(pthread_cond_init(&game->cond, NULL), 0);
}

static void *take_turns(void *argument)
{
	struct game *game = argument;
	for (int round = 0; round < ROUNDS; round++) {
		had(game, pthread_mutex_lock(&game->mutex));
		if (round % 64 == 0)
			sched_yield();
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	return NULL;
}

static void in_every_way(struct game *game)
{
	struct timespec late = in_ms(CLOCK_REALTIME, 60000), wrong = {.tv_sec = 0, .tv_nsec = -1};
	had(game, pthread_mutex_trylock(&game->mutex));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	had(game, pthread_mutex_timedlock(&game->mutex, &late));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	had(game, pthread_mutex_clocklock(&game->mutex, CLOCK_REALTIME, &late));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	/* A free mutex is locked whatever the deadline is, but not by whatever clock. */
	had(game, pthread_mutex_timedlock(&game->mutex, &wrong));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	IS(pthread_mutex_clocklock(&game->mutex, 4711, &late), EINVAL);
}

static void *refused(void *argument)
{
	struct game *game = argument;
	struct timespec soon = in_ms(CLOCK_REALTIME, 20), wrong = {.tv_sec = 0, .tv_nsec = -1};
	IS(pthread_mutex_trylock(&game->mutex), EBUSY);
	IS(pthread_mutex_timedlock(&game->mutex, &wrong), EINVAL);
	IS(pthread_mutex_timedlock(&game->mutex, &soon), ETIMEDOUT);
	if (game->kind == RECURSIVE || game->kind == ERRORCHECK)
		IS(pthread_mutex_unlock(&game->mutex), EPERM);
	return NULL;
}

static void *wait_long(void *argument)
{
	struct game *game = argument;
	__atomic_store_n(&game->arrived, 1, __ATOMIC_RELAXED);
	had(game, pthread_mutex_lock(&game->mutex));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	return NULL;
}

/* While the mutex is held, one thread is refused it, and one waits for 100 ms. */
static void while_held(struct game *game)
{
	had(game, pthread_mutex_lock(&game->mutex));
	IS(elsewhere(refused, game), 0);
	/* Again, by its owner. */
	if (game->kind == RECURSIVE) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		IS(pthread_mutex_trylock(&game->mutex), 0);
		IS(pthread_mutex_unlock(&game->mutex), 0);
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	if (game->kind == ERRORCHECK) {
		IS(pthread_mutex_lock(&game->mutex), EDEADLK);
		IS(pthread_mutex_trylock(&game->mutex), EBUSY);
	}
	pthread_t thread = start(wait_long, game);
	while (!__atomic_load_n(&game->arrived, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(100000);
	IS(pthread_mutex_unlock(&game->mutex), 0);
	join(thread);
}

static void *await(void *argument)
{
	struct game *game = argument;
	had(game, pthread_mutex_lock(&game->mutex));
	game->arrived++;
	while (!game->go)
		had(game, pthread_cond_wait(&game->cond, &game->mutex));
	IS(pthread_mutex_unlock(&game->mutex), 0);
	return NULL;
}

static void conditions(struct game *game)
{
	game->arrived = 0;
	pthread_t thread = start(await, game);
	for (int all = 0; !all; usleep(1000)) {
		had(game, pthread_mutex_lock(&game->mutex));
		all = game->arrived;
		IS(pthread_mutex_unlock(&game->mutex), 0);
	}
	usleep(100000);
	had(game, pthread_mutex_lock(&game->mutex));
	game->go = 1;
	IS(pthread_cond_signal(&game->cond), 0);
	struct timespec soon = in_ms(CLOCK_REALTIME, 100), wrong = {.tv_sec = 0, .tv_nsec = -1};
	IS(pthread_cond_timedwait(&game->cond, &game->mutex, &wrong), EINVAL);
	int code = 0;
	for (; code != ETIMEDOUT; count(game))
		code = pthread_cond_timedwait(&game->cond, &game->mutex, &soon);
	IS(pthread_mutex_unlock(&game->mutex), 0);
	join(thread);
	/* A thread that doesn't own the mutex doesn't wait. */
	if (game->kind == ERRORCHECK)
		IS(pthread_cond_wait(&game->cond, &game->mutex), EPERM);
}

static pthread_spinlock_t spin;

static void *spin_in_turns(void *argument)
{
	(void)argument;
	for (int round = 0; round < ROUNDS; round++) {
		int code = round % 2 ? pthread_spin_trylock(&spin) : pthread_spin_lock(&spin);
		if (code)
			continue;
		__atomic_fetch_add(&counts->spun, 1, __ATOMIC_RELAXED);
		if (round % 64 == 0)
			sched_yield();
		IS(pthread_spin_unlock(&spin), 0);
	}
	return NULL;
}

static void all_together(void *(*run)(void *), void *argument)
{
	pthread_t threads[THREADS];
	for (int at = 0; at < THREADS; at++)
		threads[at] = start(run, argument);
	for (int at = 0; at < THREADS; at++)
		join(threads[at]);
}

static void play(void)
{
	static struct game games[KINDS];
	for (int kind = 0; kind < KINDS; kind++) {
		struct game *game = &games[kind];
		make(game, kind);
		in_every_way(game);
		all_together(take_turns, game);
		while_held(game);
		conditions(game);
		IS(pthread_cond_destroy(&game->cond), 0);
		IS(pthread_mutex_destroy(&game->mutex), 0);
	}
	IS(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	all_together(spin_in_turns, NULL);
}

int main(int given, char **arguments)
{
	watchdog();
	counts = shared_memory(sizeof *counts);
	play();
	if (given == 1) {
		pid_t child = fork();
		if (child == 0) {
			play();
			_exit(failures != 0);
		}
		IS(exit_of(child), 0);
		child = fork();
		if (child == 0) {
			execl(arguments[0], arguments[0], "once", NULL);
			_exit(99);
		}
		IS(exit_of(child), 0);
	}
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s %ld\n", names[kind], counts->had[kind]);
	printf("Spin %ld\n", counts->spun);
	return failures != 0;
}
