/* Locks all of its memory, now and later, and has threads use a mutex meanwhile. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
        printf("mlockall: %s\n", strerror(errno));
        return 1;
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], &attributes, worker, 0))
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    puts("locked");
    return 0;
}
