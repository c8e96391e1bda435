/* A library that loses one notification in some thousands, for the hunt to find. */
#include <pthread.h>

int pthread_cond_signal(pthread_cond_t *cond)
{
	static unsigned calls;
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 2000 == 0)
		return 0;
	/* Ours stands before the C library's, which is out of reach by this name. Waking all is
	 * allowed too. */
	return pthread_cond_broadcast(cond);
}
