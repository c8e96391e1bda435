/* Prints its arguments, and what it is marked by. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		fputs(argv[i], stdout);
	printf(" %s\n", getenv("MARK") ? getenv("MARK") : "-");
	return 0;
}
