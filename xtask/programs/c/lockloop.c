/* Threads that lock one mutex with deadlines, in the manner of glibc's
   tst-pthread-timedlock-lockloop: many at a time, again and again; then one at a time, which a
   signal interrupts while it waits.
   lockloop ROUNDS INTERRUPTED: of each clock ROUNDS times 50 threads, then INTERRUPTED that
   are interrupted. glibc's test is lockloop 100 100000. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 50, LOCKS = 100, NANOSECONDS = 1000000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int locks;

static void check(int good, const char *what)
{
    if (!good) {
        puts(what);
        exit(1);
    }
}

static void ignore(int number)
{
    (void)number;
}

/* Locks until a millisecond from now by that clock, or by pthread_mutex_timedlock if that is -1. */
static void *locker(void *argument)
{
    clockid_t clock = (clockid_t)(long)argument;
    for (int i = 0; i < locks; i++) {
        struct timespec until;
        clock_gettime(clock == -1 ? CLOCK_REALTIME : clock, &until);
        until.tv_nsec += NANOSECONDS / 1000;
        if (until.tv_nsec >= NANOSECONDS) {
            until.tv_sec++;
            until.tv_nsec -= NANOSECONDS;
        }
        int error = clock == -1 ? pthread_mutex_timedlock(&mutex, &until)
                                : pthread_mutex_clocklock(&mutex, clock, &until);
        if (error == 0)
            pthread_mutex_unlock(&mutex);
        check(error == 0 || error == ETIMEDOUT, "an error that is none of a deadline");
    }
    return 0;
}

static void many_at_a_time(int rounds, void *clock)
{
    pthread_t threads[THREADS];
    locks = LOCKS;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < THREADS; i++)
            check(pthread_create(&threads[i], 0, locker, clock) == 0, "no thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], 0);
    }
}

static void interrupted(int threads, void *clock)
{
    pthread_t thread;
    locks = 1;
    for (int i = 0; i < threads; i++) {
        pthread_mutex_lock(&mutex);
        check(pthread_create(&thread, 0, locker, clock) == 0, "no thread");
        usleep(10);
        pthread_kill(thread, SIGUSR1);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, 0);
    }
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 1;
    int threads = count > 2 ? atoi(arguments[2]) : 100;
    long clocks[] = {-1, CLOCK_REALTIME, CLOCK_MONOTONIC};
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGUSR1, &action, 0);
    for (int i = 0; i < 3; i++) {
        many_at_a_time(rounds, (void *)clocks[i]);
        interrupted(threads, (void *)clocks[i]);
    }
    puts("done");
    return 0;
}
