/* Loads a plug-in, has threads work in it, and then runs a command of a shell with the plug-in's
   path in $0: plug_host PLUGIN COMMAND [before]. With `before`, that is before they work. */
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void (*work)(void);
/* So that they meet, however late one of them is started. */
static pthread_barrier_t all_there;

static void *worker(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_there);
    work();
    return 0;
}

static int run(char *plugin, char *command)
{
    char *arguments[] = {"sh", "-c", command, plugin, 0};
    pid_t pid;
    int status;
    if (posix_spawn(&pid, "/bin/sh", 0, 0, arguments, environ))
        return 2;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 2;
}

int main(int count, char **arguments)
{
    void *plugin = dlopen(arguments[1], RTLD_NOW);
    int before = count > 3 && strcmp(arguments[3], "before") == 0;
    pthread_t threads[3];
    if (!plugin) {
        puts(dlerror());
        return 1;
    }
    work = (void (*)(void))dlsym(plugin, "plug_work");
    if (before && run(arguments[1], arguments[2]))
        return 2;
    pthread_barrier_init(&all_there, 0, 3);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    /* The plug-in's own code may be another by now: none of it may run once more. */
    _exit(before ? 0 : run(arguments[1], arguments[2]));
}
