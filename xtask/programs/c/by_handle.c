/* Some threads lock by name, others by functions that dlsym finds in a library: by_handle LIBRARY.
   Says how often two were inside at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

typedef int function(pthread_mutex_t *);
static function *found_lock, *found_unlock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int inside;
static int overlaps;
static long count;

static void section(void)
{
    overlaps += __sync_lock_test_and_set(&inside, 1);
    count++;
    __sync_lock_release(&inside);
}

static void *by_name(void *unused)
{
    for (int i = 0; i < 50000; i++) {
        pthread_mutex_lock(&mutex);
        section();
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *by_handle(void *unused)
{
    for (int i = 0; i < 50000; i++) {
        found_lock(&mutex);
        section();
        found_unlock(&mutex);
    }
    return unused;
}

int main(int arguments, char **argument)
{
    void *library = arguments > 1 ? dlopen(argument[1], RTLD_NOW) : RTLD_DEFAULT;
    pthread_t threads[4];
    found_lock = (function *)dlsym(library, "pthread_mutex_lock");
    found_unlock = (function *)dlsym(library, "pthread_mutex_unlock");
    if (!found_lock || !found_unlock)
        return 1;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, i % 2 ? by_name : by_handle, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("%ld, %d overlaps\n", count, overlaps);
    return overlaps != 0;
}
