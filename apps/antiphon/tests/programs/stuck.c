/* A program that ends while its threads wait. WHAT they wait for: "mutex", two threads that have
 * locked each other out, or "condition", one that is never notified. HOW it ends, 300 ms after all
 * of them have gone to sleep: "exit", with 7; "kill", of SIGKILL; "exec", as a shell that stays for
 * a second and exits with 7. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static atomic_int begun;
static long ids[2];

static void rest(long ms)
{
	struct timespec time = { 0, ms * 1000000 };
	nanosleep(&time, NULL);
}

static void begin(int one)
{
	ids[one] = syscall(SYS_gettid);
	begun++;
}

__attribute__((noinline)) void *lock_both(void *one)
{
	int first = one != NULL;
	pthread_mutex_lock(&locks[first]);
	begin(first);
	while (begun < 2)
		;
	pthread_mutex_lock(&locks[!first]);
	return (void *)(long)pthread_mutex_unlock(&locks[!first]);
}

__attribute__((noinline)) void *wait_for_nobody(void *unused)
{
	pthread_mutex_lock(&locks[0]);
	begin(0);
	for (;;)
		pthread_cond_wait(&never, &locks[0]);
	return unused;
}

static int sleeps(long thread)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
	FILE *file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'S';
}

int main(int count, char **arguments)
{
	pthread_t thread;
	if (count != 3)
		return 2;
	int both = !strcmp(arguments[1], "mutex");
	pthread_create(&thread, NULL, both ? lock_both : wait_for_nobody, NULL);
	if (both)
		pthread_create(&thread, NULL, lock_both, arguments);
	while (begun < 1 + both || !sleeps(ids[0]) || (both && !sleeps(ids[1])))
		rest(1);
	rest(300);
	if (!strcmp(arguments[2], "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(arguments[2], "exec"))
		execl("/bin/sh", "sh", "-c", "sleep 1; exit 7", NULL);
	return 7;
}
