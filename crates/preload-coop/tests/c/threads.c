/* Threads: loops side by side, waits that are cancelled, handlers that wait, or jump out of a wait;
 * and a caller that was loaded while the program ran. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/time.h>

#include "ways.h"

static int empty[2];
static int cleaned;
/* A thread is about to wait. */
static sem_t about;

static void *loops(void *way)
{
	become_loop();
	for (int at = 0; at < 100; at++)
		CHECK(wait_by((enum way)(intptr_t)way, empty[0], at % 2, NULL) == 0);
	return NULL;
}

static void clean(void *argument)
{
	(void)argument;
	/* Cleanup may wait, too. */
	CHECK(poll(NULL, 0, 1) == 0);
	cleaned++;
}

static void *waits_for_good(void *way)
{
	become_loop();
	pthread_cleanup_push(clean, NULL);
	sem_post(&about);
	wait_by((enum way)(intptr_t)way, empty[0], -1, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *waits_uncancelled(void *way)
{
	become_loop();
	int state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sem_post(&about);
	CHECK(wait_by((enum way)(intptr_t)way, empty[0], 50, NULL) == 0);
	return (void *)1;
}

static void cancels(intptr_t way)
{
	pthread_t thread;
	void *result;
	int before = cleaned;
	CHECK(pthread_create(&thread, NULL, waits_for_good, (void *)way) == 0);
	sem_wait(&about);
	usleep(20000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED && cleaned == before + 1);
	CHECK(pthread_create(&thread, NULL, waits_uncancelled, (void *)way) == 0);
	sem_wait(&about);
	usleep(10000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == (void *)1);
}

static sigjmp_buf back;
static int jumps;

static void handle(int signal)
{
	(void)signal;
	int saved = errno;
	CHECK(poll(NULL, 0, 0) == 0);
	errno = saved;
	if (jumps)
		siglongjmp(back, 1);
}

static void in_handlers(void)
{
	struct sigaction action = { .sa_handler = handle };
	struct itimerval soon = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (enum way way = 0; way < WAYS; way++) {
		for (jumps = 0; jumps < 2; jumps++) {
			if (sigsetjmp(back, 1) == 0) {
				CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
				CHECK(wait_by(way, empty[0], -1, NULL) == -1 && errno == EINTR);
			}
			CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
			CHECK(wait_by(way, empty[0], 1, NULL) == 0);
		}
	}
}

int main(int count, char **arguments)
{
	CHECK(pipe(empty) == 0 && sem_init(&about, 0, 0) == 0);
	pthread_t threads[WAYS];
	for (intptr_t way = 0; way < WAYS; way++)
		CHECK(pthread_create(&threads[way], NULL, loops, (void *)way) == 0);
	for (int way = 0; way < WAYS; way++)
		CHECK(pthread_join(threads[way], NULL) == 0);
	for (intptr_t way = 0; way < WAYS; way++)
		cancels(way);
	become_loop();
	in_handlers();
	if (count > 1) {
		void *loaded = dlopen(arguments[1], RTLD_NOW);
		CHECK(loaded);
		int (*waits)(int) = (int (*)(int))dlsym(loaded, "waits");
		CHECK(waits && waits(5) == 0);
		CHECK(dlclose(loaded) == 0);
	}
	return 0;
}
