/* Its threads wait for each other; meanwhile another program takes its place. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        usleep(500);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t threads[3];
    char command[1024];
    (void)count;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    snprintf(command, sizeof command, "cp /bin/true '%s.new' && mv '%s.new' '%s'", arguments[0],
             arguments[0], arguments[0]);
    return system(command) != 0;
}
