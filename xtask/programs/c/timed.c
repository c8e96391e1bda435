/* Waits a second for a condition that never comes, by the wall clock, which another library may
   have set; says how many seconds it took. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec before, until, after;
    int error;
    clock_gettime(CLOCK_REALTIME, &before);
    until = before;
    until.tv_sec++;
    pthread_mutex_lock(&mutex);
    do
        error = pthread_cond_timedwait(&condition, &mutex, &until);
    while (error == 0);
    clock_gettime(CLOCK_REALTIME, &after);
    long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("%s after %s\n", error == ETIMEDOUT ? "timed out" : "an error",
           ms < 900 ? "too little time" : ms < 60000 ? "its time" : "too much time");
    return 0;
}
