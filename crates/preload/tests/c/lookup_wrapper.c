/* A wrapper like a tracer's: it forwards each call to the next function of that name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#define WRAP(name)                                                                                 \
	int name(pthread_mutex_t *mutex)                                                           \
	{                                                                                          \
		static int (*next)(pthread_mutex_t *);                                             \
		if (!next)                                                                         \
			next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, #name);                \
		return next(mutex);                                                                \
	}

WRAP(pthread_mutex_lock)
WRAP(pthread_mutex_trylock)
WRAP(pthread_mutex_unlock)
