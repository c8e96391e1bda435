/* A plugin with the archive in it: the library's thread-local state is in a shared object that is
 * loaded late. `host.c` loads it. */
#include <antiphon.h>
#include <pthread.h>

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_cond_t changed = ANTIPHON_COND_INIT;
static long count;

void plugin_add(long times)
{
	while (times--) {
		antiphon_mutex_lock(&mutex);
		count++;
		antiphon_mutex_unlock(&mutex);
	}
	antiphon_cond_broadcast(&changed);
}

long plugin_wait_for(long expected)
{
	antiphon_mutex_lock(&mutex);
	while (count < expected)
		antiphon_cond_wait(&changed, &mutex);
	antiphon_mutex_unlock(&mutex);
	return count;
}
