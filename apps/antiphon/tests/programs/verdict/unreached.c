// yes: threads sleep in futexes that no library made. no: they wait for a condition.
#include "common.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static int word;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static bool raw;

static void *sleeper(void *number)
{
	(void)number;
	struct timespec wait = { .tv_nsec = 400000000 }, until;
	if (raw) {
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += wait.tv_nsec;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	while (!pthread_cond_timedwait(&never, &lock, &until))
		;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(int argc, char **argv)
{
	raw = asked(argc, argv);
	together(3, sleeper);
}
