// Two threads look something up again and again. yes: a third one makes it anew from time to time,
// for 4 ms with the lock. no: it does that before it takes the lock.
#include "common.h"
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long table;
static atomic_bool over;
static bool within;

static void look_up(void)
{
	volatile long outside = 0;
	while (!over) {
		pthread_mutex_lock(&lock);
		outside += table;
		pthread_mutex_unlock(&lock);
		for (int i = 0; i < 3000; i++)
			outside += i;
	}
}

static void renew(void)
{
	for (int times = 0; times < 30; times++) {
		usleep(10000);
		if (!within)
			compute(0.004);
		pthread_mutex_lock(&lock);
		if (within)
			compute(0.004);
		table++;
		pthread_mutex_unlock(&lock);
	}
	over = true;
}

static void *work(void *number)
{
	if (number)
		look_up();
	else
		renew();
	return NULL;
}

int main(int argc, char **argv)
{
	within = asked(argc, argv);
	together(3, work);
}
