/* Forks while threads wait for the mutex that the forking thread holds. The child has none of them,
 * and must find the mutex as good as new once it has released it. */
#include "hunt.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ROUNDS = 100, ALARM_S = 180 };

static pthread_cond_t turned;
static int turn;

/* Locks like a locker, and passes a token back and forth. */
static void *contend(void *me)
{
	int mine = me != NULL;
	for (int round = 0; round < ROUNDS; round++) {
		MUST(pthread_mutex_lock(&forked.mutex));
		while (turn != mine)
			MUST(pthread_cond_wait(&turned, &forked.mutex));
		section(&forked, 1000);
		turn = !mine;
		MUST(pthread_cond_signal(&turned));
		MUST(pthread_mutex_unlock(&forked.mutex));
		MUST(pthread_rwlock_rdlock(&forked_shared));
		MUST(pthread_rwlock_unlock(&forked_shared));
		progress(CHILD_SLOT);
	}
	return NULL;
}

static _Noreturn void be_child(pid_t parent)
{
	/* The thread that forked lives as long as its process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/* Longer than the watchdog's patience, in case that there is no watchdog. */
	alarm(ALARM_S);
	MUST(pthread_mutex_unlock(&forked.mutex));
	MUST(pthread_rwlock_init(&forked_shared, NULL));
	turn = 0;
	MUST(pthread_cond_init(&turned, NULL));
	pthread_t threads[2];
	for (long at = 0; at < 2; at++)
		MUST(pthread_create(&threads[at], NULL, contend, at ? &turn : NULL));
	for (int round = 0; round < ROUNDS; round++) {
		MUST(pthread_mutex_lock(&forked.mutex));
		section(&forked, 1000);
		MUST(pthread_mutex_unlock(&forked.mutex));
		MUST(pthread_rwlock_wrlock(&forked_shared));
		MUST(pthread_rwlock_unlock(&forked_shared));
	}
	for (int at = 0; at < 2; at++)
		MUST(pthread_join(threads[at], NULL));
	_exit(0);
}

void fork_once(struct chance *chance)
{
	pid_t parent = getpid();
	MUST(pthread_mutex_lock(&forked.mutex));
	MUST(pthread_rwlock_wrlock(&forked_shared));
	/* Lets some come and queue. */
	spin_for(below(chance, 100000));
	pid_t child = fork();
	if (child == 0)
		be_child(parent);
	MUST(pthread_rwlock_unlock(&forked_shared));
	MUST(pthread_mutex_unlock(&forked.mutex));
	if (child == -1)
		broken("fork", errno);
	board->roles[CHILD_SLOT] = CHILD;
	board->child = child;
	int status = 0;
	while (waitpid(child, &status, 0) == -1)
		if (errno != EINTR)
			broken("waitpid", errno);
	board->child = 0;
	board->roles[CHILD_SLOT] = ABSENT;
	if (status)
		broken("the child of a fork failed: its status", status);
	count(FORKS);
}
