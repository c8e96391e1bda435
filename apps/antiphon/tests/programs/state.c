/* What a program finds when it is started: signals, descriptors, limits, and the rest of what a
 * wrapper might change. Writes it to the file that the first argument names.
 *
 *   state FILE               writes
 *   state block N -- CMD     executes CMD with signal N blocked */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static void write_signals(FILE *out)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6) ||
		    !strncmp(line, "SigCgt", 6) || !strncmp(line, "Cpus_allowed:", 13))
			fputs(line, out);
	if (status)
		fclose(status);
}

static void write_descriptors(FILE *out)
{
	for (int at = 0; at < 64; at++)
		if (at != fileno(out) && fcntl(at, F_GETFD) != -1)
			fprintf(out, "descriptor %d\n", at);
}

static void write_limits(FILE *out)
{
	for (int which = 0; which < RLIM_NLIMITS; which++) {
		struct rlimit limit;
		if (!getrlimit(which, &limit))
			fprintf(out, "limit %d: %lu %lu\n", which, (unsigned long)limit.rlim_cur,
				(unsigned long)limit.rlim_max);
	}
}

static int block(char **arguments)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, atoi(arguments[2]));
	sigprocmask(SIG_BLOCK, &set, NULL);
	execvp(arguments[4], arguments + 4);
	return 127;
}

int main(int count, char **arguments)
{
	if (count > 4 && !strcmp(arguments[1], "block"))
		return block(arguments);
	/* Before a file takes the number of a stream that is closed. */
	int file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int high = fcntl(file, F_DUPFD_CLOEXEC, 50);
	close(file);
	FILE *out = fdopen(high, "w");
	if (!out)
		return 1;
	char folder[4096];
	write_signals(out);
	write_descriptors(out);
	write_limits(out);
	mode_t mask = umask(0);
	fprintf(out, "umask %o, nice %d, user %d, in the group of its parent's %d\n", (unsigned)mask,
		getpriority(PRIO_PROCESS, 0), (int)getuid(), getpgrp() == getpgid(getppid()));
	fprintf(out, "folder %s, dumpable %d\n", getcwd(folder, sizeof folder),
		prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	for (int at = 2; at < count; at++)
		fprintf(out, "argument <%s>\n", arguments[at]);
	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, "ANTIPHON_", 9) && strncmp(*entry, "LD_PRELOAD=", 11) &&
		    strncmp(*entry, "ASAN_OPTIONS=", 13) && strncmp(*entry, "_=", 2))
			fprintf(out, "variable %s\n", *entry);
	return fclose(out) ? 1 : 7;
}
