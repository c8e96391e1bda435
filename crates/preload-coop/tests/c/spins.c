/* A loop that always has work, for a number of milliseconds of the clock from when it is told to
 * begin, by the end of its input: prints its process id, and then its CPU time in microseconds, and
 * the number of its waits. It announces its next release time, every 5 ms. */
#define _GNU_SOURCE
#include "antiphon_coop.h"
#include "ways.h"

static int64_t cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	become_loop();
	printf("%d\n", getpid());
	fflush(stdout);
	while (getchar() != EOF)
		;
	int64_t begin = now_ns(), end = begin + atoi(arguments[1]) * 1000000LL;
	int64_t had = cpu_ns(), release = begin;
	long waits = 0;
	while (now_ns() < end) {
		for (int64_t until = cpu_ns() + 200000; cpu_ns() < until;)
			;
		while (release < now_ns())
			release += 5000000;
		ANTIPHON_COOP_RELEASE(release);
		CHECK(poll(NULL, 0, 0) == 0);
		waits++;
	}
	printf("%lld %ld\n", (long long)(cpu_ns() - had) / 1000, waits);
	return 0;
}
