/* A library that waits. */
#include <poll.h>

int waits(int ms)
{
	int result = 0;
	for (int at = 0; at < 20; at++)
		result |= poll(0, 0, ms);
	return result;
}
