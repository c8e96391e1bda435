/* Becomes the program of its arguments. */
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	execv(argv[1], argv + 1);
	return 1;
}
