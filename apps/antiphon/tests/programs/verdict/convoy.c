// yes: two threads take one lock for a few instructions, after a few more of their own.
// no: each has a lock of its own.
#include "common.h"

struct own {
	pthread_mutex_t lock;
	volatile long count;
	char padding[128];
};
static struct own all[2];
static bool one;

static void *count(void *number)
{
	struct own *own = &all[one ? 0 : (long)number];
	volatile long outside = 0;
	for (int i = 0; i < 200000; i++) {
		pthread_mutex_lock(&own->lock);
		own->count++;
		pthread_mutex_unlock(&own->lock);
		for (int j = 0; j < 60; j++)
			outside += j;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	one = asked(argc, argv);
	together(2, count);
}
