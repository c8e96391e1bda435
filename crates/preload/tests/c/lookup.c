/* Ways to find a function, other than by name: by handle, by version, behind an object, from a
 * plug-in with a scope of its own. A mutex that is locked through one of them is locked for all.
 *
 * The first argument is whether a wrapper is preloaded: "none", "first" or "behind". The others are
 * plug-ins: one that looks for functions, the same with functions of its own, one that is linked to
 * nothing. */
#include "check.h"
#include <dlfcn.h>

typedef int on_mutex(pthread_mutex_t *);
typedef void *find(void *handle, const char *name, const char *version);

static void *here(void *handle, const char *name, const char *version)
{
	return version ? dlvsym(handle, name, version) : dlsym(handle, name);
}

#if defined(__x86_64__)
static const char *const versions[] = {NULL, "GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.30",
				       "GLIBC_2.34"};
#else
static const char *const versions[] = {NULL, "GLIBC_2.17", "GLIBC_2.30", "GLIBC_2.34"};
#endif
enum { VERSIONS = sizeof versions / sizeof *versions };

static void *refused(void *mutex)
{
	return (void *)(long)pthread_mutex_trylock(mutex);
}

/* A mutex that is locked by name is unlocked by the functions found, and the other way round. */
static int mutexes(find *find, void *handle)
{
	int found = 0;
	for (int at = 0; at < VERSIONS; at++) {
		on_mutex *lock = (on_mutex *)find(handle, "pthread_mutex_lock", versions[at]);
		on_mutex *unlock = (on_mutex *)find(handle, "pthread_mutex_unlock", versions[at]);
		on_mutex *trylock = (on_mutex *)find(handle, "pthread_mutex_trylock", versions[at]);
		on_mutex *old = (on_mutex *)find(handle, "__pthread_mutex_lock", versions[at]);
		pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
		for (on_mutex *one = lock; one; one = one == old ? NULL : old) {
			IS(one(&mutex), 0);
			IS(elsewhere(refused, &mutex), EBUSY);
			IS(pthread_mutex_unlock(&mutex), 0);
			IS(elsewhere(refused, &mutex), 0);
			mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
			found++;
		}
		if (trylock) {
			IS(pthread_mutex_lock(&mutex), 0);
			IS(trylock(&mutex), EBUSY);
			IS(unlock ? unlock(&mutex) : pthread_mutex_unlock(&mutex), 0);
			IS(trylock(&mutex), 0);
			IS(elsewhere(refused, &mutex), EBUSY);
			IS(pthread_mutex_unlock(&mutex), 0);
		}
	}
	return found;
}

static int rwlocks(find *find, void *handle)
{
	typedef int on_rwlock(pthread_rwlock_t *);
	int found = 0;
	for (int at = 0; at < VERSIONS; at++) {
		const char *version = versions[at];
		on_rwlock *write = (on_rwlock *)find(handle, "pthread_rwlock_wrlock", version);
		on_rwlock *read = (on_rwlock *)find(handle, "pthread_rwlock_tryrdlock", version);
		on_rwlock *unlock = (on_rwlock *)find(handle, "pthread_rwlock_unlock", version);
		if (!write || !read || !unlock)
			continue;
		pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
		IS(write(&rwlock), 0);
		IS(pthread_rwlock_trywrlock(&rwlock), EBUSY);
		IS(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
		IS(pthread_rwlock_unlock(&rwlock), 0);
		IS(pthread_rwlock_wrlock(&rwlock), 0);
		IS(read(&rwlock), EBUSY);
		IS(unlock(&rwlock), 0);
		found++;
	}
	return found;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int asleep_now, notified;

static void *sleeper(void *unused)
{
	pthread_mutex_lock(&mutex);
	asleep_now = 1;
	while (!notified)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

/* Functions of an old version are left out where they are of another kind. */
static void conditions(find *find, void *handle)
{
	typedef int on_cond(pthread_cond_t *);
	for (int at = 0; at < VERSIONS; at++) {
		if (versions[at] && !strcmp(versions[at], "GLIBC_2.2.5"))
			continue;
		on_cond *wake = (on_cond *)find(handle, "pthread_cond_broadcast", versions[at]);
		if (!wake)
			continue;
		asleep_now = notified = 0;
		pthread_t thread = start(sleeper, NULL);
		for (int ready = 0; !ready; sched_yield()) {
			pthread_mutex_lock(&mutex);
			ready = asleep_now;
			pthread_mutex_unlock(&mutex);
		}
		pthread_mutex_lock(&mutex);
		notified = 1;
		IS(wake(&cond), 0);
		pthread_mutex_unlock(&mutex);
		join(thread);
	}
}

static void all(const char *how, find *find, void *handle)
{
	int before = failures;
	YES(handle == RTLD_DEFAULT || handle != NULL);
	YES(mutexes(find, handle) > 0);
	YES(rwlocks(find, handle) > 0);
	conditions(find, handle);
	if (failures != before)
		fprintf(stderr, "... %s\n", how);
}

/* A function that is not there is not found, and `dlerror` says it once. */
static void errors(void *bare, find *find)
{
	IS(find(bare, "pthread_mutex_lock", NULL), NULL);
	const char *error = dlerror();
	YES(error && strstr(error, "undefined symbol: pthread_mutex_lock"));
	IS(dlerror(), NULL);
	IS(dlvsym(RTLD_DEFAULT, "pthread_mutex_lock", "GLIBC_2.99"), NULL);
	error = dlerror();
	YES(error && strstr(error, "pthread_mutex_lock"));
	YES(error && strstr(error, "GLIBC_2.99"));
	IS(dlsym(RTLD_DEFAULT, "no_such_function"), NULL);
	YES(dlsym(RTLD_DEFAULT, "pthread_mutex_lock") != NULL);
	/* The previous error is cleared. */
	IS(dlerror(), NULL);
	IS(dlsym(RTLD_DEFAULT, "no_such_function"), NULL);
	YES(dlsym(dlopen("libc.so.6", RTLD_NOW), "pthread_mutex_lock") != NULL);
	IS(dlerror(), NULL);
	/* Names that begin as ours, and functions that stay the C library's. */
	IS(dlsym(RTLD_DEFAULT, "pthread_mutex_"), NULL);
	IS(dlsym(RTLD_DEFAULT, "pthread_mutex_lockx"), NULL);
	YES(dlsym(RTLD_DEFAULT, "pthread_mutexattr_init") == (void *)pthread_mutexattr_init);
	YES(dlsym(RTLD_DEFAULT, "pthread_mutex_consistent") == (void *)pthread_mutex_consistent);
	YES(dlsym(dlopen("libc.so.6", RTLD_NOW), "malloc") != NULL);
}

int main(int count, char **arguments)
{
	watchdog();
	if (count != 5)
		return 98;
	void *libc = dlopen("libc.so.6", RTLD_NOW), *old = dlopen("libpthread.so.0", RTLD_NOW);
	all("libc", here, libc);
	all("libpthread", here, old);
	all("program", here, dlopen(NULL, RTLD_NOW));
	all("default", here, RTLD_DEFAULT);
	all("next", here, RTLD_NEXT);

	/* A wrapper, if there is one, wraps our functions. */
	void *wrapper = dlopen("libwrapper.so", RTLD_NOW | RTLD_NOLOAD);
	IS(wrapper != NULL, strcmp(arguments[1], "none") != 0);
	if (wrapper) {
		all("wrapper", here, wrapper);
		IS(dlsym(wrapper, "pthread_mutex_lock") == (void *)pthread_mutex_lock,
		   strcmp(arguments[1], "first") == 0);
		pthread_mutexattr_t robust;
		pthread_mutexattr_init(&robust);
		pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_t handed_on;
		IS(pthread_mutex_init(&handed_on, &robust), 0);
		IS(pthread_mutex_lock(&handed_on), 0);
		IS(elsewhere(refused, &handed_on), EBUSY);
		IS(pthread_mutex_unlock(&handed_on), 0);
	}

	/* In a plug-in that looks into its own scope first, and from one that doesn't. */
	void *deep = dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND);
	all("a plug-in bound deep", here, deep);
	IS(dlclose(deep), 0);
	void *plug = dlopen(arguments[2], RTLD_NOW);
	find *there = (find *)dlsym(plug, "plug_find");
	all("plug-in", here, plug);
	all("plug-in, default", there, RTLD_DEFAULT);
	all("plug-in, next", there, RTLD_NEXT);
	all("plug-in, libc", there, libc);
	IS(dlclose(plug), 0);
	/* The plug-in's own functions stay its own. */
	void *own = dlopen(arguments[3], RTLD_NOW);
	there = (find *)dlsym(own, "plug_find");
	on_mutex *its = (on_mutex *)dlsym(own, "pthread_mutex_lock");
	YES(its && its(NULL) == 4711);
	its = (on_mutex *)there(RTLD_DEFAULT, "pthread_mutex_lock", NULL);
	YES(its == pthread_mutex_lock);
	all("a wrapper's next", there, RTLD_NEXT);

	void *bare = dlopen(arguments[4], RTLD_NOW);
	YES(bare != NULL);
	errors(bare, here);
	return failures != 0;
}
