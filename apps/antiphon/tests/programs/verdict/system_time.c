// yes: two threads pass the time by sched_yield. no: by sums.
#include "common.h"
#include <sched.h>

static bool yields;

static void *work(void *unused)
{
	volatile long sum = 0;
	for (double until = cpu_s() + 0.15; cpu_s() < until;) {
		if (yields)
			sched_yield();
		for (int i = 0; !yields && i < 1000000; i++)
			sum += i;
	}
	return unused;
}

int main(int argc, char **argv)
{
	yields = asked(argc, argv);
	together(2, work);
}
