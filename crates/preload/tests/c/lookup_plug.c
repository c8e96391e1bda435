/* A plug-in that finds functions as it does itself; with OWN, one that has one of its own;
 * with BARE, one that has and finds nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#ifdef BARE
int plug_bare;
#else
/* No last call: the code that looks must be seen to be in here. */
void *plug_find(void *handle, const char *name, const char *version)
{
	void *volatile found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
	return found;
}

#ifdef OWN
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 4711;
}
#endif
#endif
