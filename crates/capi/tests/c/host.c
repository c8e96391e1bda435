/* Loads the plugin that its argument names, with threads that were there before. */
#include "check.h"

#include <dlfcn.h>

enum { THREADS = 3, EACH = 20000 };

static void *plugin_add;

static void *run(void *unused)
{
	void *symbol;
	void (*add)(long times);
	(void)unused;
	while (!(symbol = __atomic_load_n(&plugin_add, __ATOMIC_ACQUIRE)))
		usleep(1000);
	memcpy(&add, &symbol, sizeof add);
	add(EACH);
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	long (*wait_for)(long expected);
	void *plugin, *symbol;
	int at;
	watchdog();
	for (at = 0; at < THREADS; at++)
		threads[at] = start(run, NULL);
	plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		return 99;
	}
	symbol = dlsym(plugin, "plugin_wait_for");
	memcpy(&wait_for, &symbol, sizeof wait_for);
	__atomic_store_n(&plugin_add, dlsym(plugin, "plugin_add"), __ATOMIC_RELEASE);
	IS(wait_for((long)THREADS * EACH), THREADS * EACH);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(dlclose(plugin), 0);
	return failures != 0;
}
