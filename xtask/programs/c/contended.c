/* Four threads take turns at a mutex and a condition variable; says how often. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long count;

static void *worker(void *unused)
{
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        if (++count % 100 == 0) {
            usleep(300);
            pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, worker, 0);
    pthread_mutex_lock(&mutex);
    while (count < 1500)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("%ld\n", count);
    return 0;
}
