/* A library that changes the environment before main, as LIBRARY, and a program that does after.
 * Prints how many of its variables it finds again. */
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY
void *behind;

__attribute__((constructor)) static void change(void)
{
	if (setenv("SETTLED", "1", 1))
		abort();
	/* What stands behind the environment's array. */
	behind = malloc(64);
}
#else
extern void *behind;

int main(void)
{
	int found = behind && getenv("SETTLED") && getenv("PATH") && !getenv("LD_PRELOAD");
	char name[16];
	for (int at = 0; at < 100; at++) {
		snprintf(name, sizeof name, "SETTLED%d", at);
		if (setenv(name, name, 1))
			return 1;
	}
	for (int at = 0; at < 100; at++) {
		snprintf(name, sizeof name, "SETTLED%d", at);
		found += getenv(name) && getenv("PATH") && getenv("HOME");
	}
	printf("%d\n", found);
	return 0;
}
#endif
