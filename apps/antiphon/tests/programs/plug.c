/* A plug-in whose callers wait for each other. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void plug_work(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        usleep(500);
        pthread_mutex_unlock(&mutex);
    }
}
