/* Says which signals came until SIGTERM did: signals FILE. Makes the file when it is ready. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t came[NSIG];

static void note(int number)
{
    came[number]++;
}

int main(int count, char **arguments)
{
    static const int numbers[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGURG, SIGCONT, SIGALRM};
    int last = sizeof numbers / sizeof *numbers;
    if (count != 2)
        return 1;
    for (int i = 0; i < last; i++)
        signal(numbers[i], note);
    signal(SIGTERM, note);
    fclose(fopen(arguments[1], "w"));
    /* A sleep that a signal interrupts is begun again; half a minute is for ever. */
    for (int i = 0; i < 3000 && !came[SIGTERM]; i++)
        usleep(10000);
    for (int i = 0; i < last; i++)
        printf("%d: %s\n", numbers[i], came[numbers[i]] ? "came" : "did not come");
    return came[SIGTERM] ? 9 : 1;
}
