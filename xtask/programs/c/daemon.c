/* A daemon in the old manner: forks twice, closes all descriptors, and goes on locking mutexes with
   several threads until it is told to end. daemon PIDFILE ANSWERFILE; its starter exits with 3. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t mutexes[16];
static volatile sig_atomic_t told;

static void tell(int number)
{
    (void)number;
    told = 1;
}

static void *worker(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    while (!told) {
        pthread_mutex_t *mutex = &mutexes[rand_r(&state) % 16];
        pthread_mutex_lock(mutex);
        usleep(50);
        pthread_mutex_unlock(mutex);
    }
    return 0;
}

static void work(void)
{
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, worker, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
}

static void write_file(int directory, const char *name, long number)
{
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dprintf(file, "%ld\n", number);
    close(file);
}

int main(int count, char **arguments)
{
    int directory;
    if (count != 3)
        return 1;
    if (fork())
        return 3;
    setsid();
    if (fork())
        _exit(0);
    for (int file = 0; file < 1024; file++)
        close(file);
    open("/dev/null", O_RDWR);
    dup(0);
    dup(0);
    directory = open(".", O_RDONLY);
    chdir("/");
    umask(0);
    signal(SIGTERM, tell);
    write_file(directory, arguments[1], getpid());
    write_file(directory, arguments[2], 42);
    work();
    unlinkat(directory, arguments[2], 0);
    unlinkat(directory, arguments[1], 0);
    return 7;
}
