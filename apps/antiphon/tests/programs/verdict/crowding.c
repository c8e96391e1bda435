// yes: four threads for each CPU compute. no: one thread computes.
#include "common.h"

static void *work(void *number)
{
	(void)number;
	compute(0.15);
	return NULL;
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int threads = asked(argc, argv) ? (cpus < 16 ? 4 * cpus : 64) : 1;
	together(threads, work);
}
