// yes: it computes while four other processes for each CPU do, which are not its children. no: it
// sleeps.
#include "common.h"
#include <signal.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	if (!asked(argc, argv)) {
		sleep(1);
		return 0;
	}
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t group = fork();
	if (!group) {
		setpgid(0, 0);
		for (long i = 0; i < 4 * cpus; i++) {
			if (!fork()) {
				alarm(10);
				for (;;)
					;
			}
		}
		_exit(0);
	}
	waitpid(group, NULL, 0);
	compute(0.3);
	kill(-group, SIGKILL);
}
