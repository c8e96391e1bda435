/* Every kind of condition variable with every kind of mutex. */
#include "check.h"

enum { CONDS = 2, MUTEXES = 7, ROUNDS = 300, MANY = 4 };
static const char *const names[MUTEXES] = {"normal", "adaptive", "recursive", "errorcheck",
					   "robust", "inherit",  "shared"};

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
	if (kind < 4)
		pthread_mutexattr_settype(&attributes, (int[]){PTHREAD_MUTEX_NORMAL,
							      PTHREAD_MUTEX_ADAPTIVE_NP,
							      PTHREAD_MUTEX_RECURSIVE,
							      PTHREAD_MUTEX_ERRORCHECK}[kind]);
	if (kind == 4)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (kind == 5)
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (kind == 6)
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

static void play(struct game *game, int me)
{
	for (int round = 0; round < ROUNDS; round++) {
		IS(pthread_mutex_lock(&game->mutex), 0);
		while (game->turn != me) {
			struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);
			IS(round % 2 ? pthread_cond_wait(&game->cond, &game->mutex)
				     : pthread_cond_timedwait(&game->cond, &game->mutex, &late),
			   0);
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
	while (!game->go)
		IS(pthread_cond_wait(&game->cond, &game->mutex), 0);
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
	soon = in_ms(CLOCK_REALTIME, 10);
	IS(pthread_cond_clockwait(&game->cond, &game->mutex, CLOCK_REALTIME, &soon), ETIMEDOUT);
	IS(pthread_mutex_unlock(&game->mutex), 0);
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
			if (kind == 4)
				owner_dies(game);
			IS(pthread_cond_destroy(&game->cond), 0);
			IS(pthread_mutex_destroy(&game->mutex), 0);
			if (failures != before)
				fprintf(stderr, "%s cond, %s mutex\n",
					shared_cond ? "shared" : "own", names[kind]);
		}
	/* Two processes. */
	struct game *game = make(1, 6);
	pid_t child = fork();
	if (child == 0) {
		play(game, 1);
		_exit(failures != 0);
	}
	play(game, 0);
	IS(exit_of(child), 0);
	IS(pthread_cond_destroy(&game->cond), 0);
	return failures != 0;
}
