/* Checks for the programs in this directory: each says what it expects and what it got. A program
 * exits with 0 if all held; a hang ends in SIGALRM. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

#define IS(got, want)                                                                              \
	do {                                                                                       \
		long got_ = (long)(got), want_ = (long)(want);                                     \
		if (got_ != want_) {                                                               \
			fprintf(stderr, "%s:%d: %s is %ld, not %s (%ld)\n", __FILE__, __LINE__,   \
				#got, got_, #want, want_);                                         \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#define YES(condition) IS(!!(condition), 1)

static inline void watchdog(void)
{
	alarm(120);
}

/* Now and `ms` in that clock. */
static inline struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec time;
	clock_gettime(clock, &time);
	long long ns = time.tv_sec * 1000000000LL + time.tv_nsec + ms * 1000000LL;
	time.tv_sec = ns / 1000000000;
	time.tv_nsec = ns % 1000000000;
	return time;
}

static inline int passed(clockid_t clock, const struct timespec *time)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec > time->tv_sec ||
	       (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

static inline pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, argument)) {
		perror("pthread_create");
		exit(99);
	}
	return thread;
}

static inline void *join(pthread_t thread)
{
	void *result = NULL;
	IS(pthread_join(thread, &result), 0);
	return result;
}

/* Runs `run(argument)` in a thread of its own and returns what it returned. */
static inline long elsewhere(void *(*run)(void *), void *argument)
{
	return (long)join(start(run, argument));
}

/* Lets the others get to where they sleep; nothing depends on that they have. */
static inline void settle(void)
{
	usleep(20000);
}

/* Whether the thread of that id, 0 for none yet, sleeps. */
static inline int asleep(pid_t tid)
{
	char name[64], line[256];
	snprintf(name, sizeof name, "/proc/self/task/%d/stat", tid);
	FILE *file = tid ? fopen(name, "r") : NULL;
	char *read = file ? fgets(line, sizeof line, file) : NULL;
	if (file)
		fclose(file);
	char *state = read ? strrchr(line, ')') : NULL;
	return state && state[1] && state[2] == 'S';
}

/* Memory that children share. */
static inline void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(99);
	}
	return memory;
}

/* The exit code of a child, or 1000 + the signal that ended it. */
static inline int exit_of(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) == -1 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
