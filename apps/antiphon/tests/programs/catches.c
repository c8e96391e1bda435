/* Catches every signal that can be caught, and says which came, and with what value. Ends with 10
 * when SIGTERM comes. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	sigset_t all;
	siginfo_t about;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	do {
		if (sigwaitinfo(&all, &about) < 0)
			continue;
		printf("signal %d value %d\n", about.si_signo,
		       about.si_code == SI_QUEUE ? about.si_value.sival_int : 0);
		fflush(stdout);
	} while (about.si_signo != SIGTERM);
	return 10;
}
