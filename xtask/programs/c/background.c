/* Eight threads lock mutexes for half a second: something of CMD that runs when CMD has ended. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutexes[4096];

static void *worker(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    for (int i = 0; i < 1500; i++) {
        pthread_mutex_t *mutex = &mutexes[rand_r(&state) % (8 << i / 200)];
        pthread_mutex_lock(mutex);
        usleep(200);
        pthread_mutex_unlock(mutex);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, worker, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    return 0;
}
