/* The beginning and the end of programs that share a CPU. */
#include "check.h"

#include <antiphon_loop.h>

enum { MS = 1000000 };

/* A part in a domain, on the first CPU that there is. */
static inline antiphon_coop_t part(const char *domain)
{
	static int cpu = -1;
	antiphon_coop_t made;
	cpu_set_t may;
	memset(&made, 0, sizeof made);
	if (cpu < 0 && sched_getaffinity(0, sizeof may, &may) == 0)
		while (!CPU_ISSET(++cpu, &may))
			;
	made.domain = domain;
	made.cpu = ANTIPHON_COOP_CPU(cpu);
	return made;
}

static inline void spin(uint64_t ns)
{
	uint64_t until = antiphon_loop_now_ns() + ns;
	while (antiphon_loop_now_ns() < until)
		;
}

/* Gives this process domains of its own: in a directory. */
static inline void own_directory(void)
{
	/* mkdtemp(3) puts a name of its own for the Xs. */
	char name[] = "/tmp/antiphon-capi-XXXXXX";
	YES(mkdtemp(name) != NULL);
	IS(setenv("XDG_RUNTIME_DIR", name, 1), 0);
}

/* Removes the directory, with the domains that were made in it. */
static inline void forget_directory(void)
{
	IS(system("rm -r \"$XDG_RUNTIME_DIR\""), 0);
}
