/* A program without standard streams, like a daemon: their descriptors stay free, so that output to
 * them goes nowhere. And a program that closes all descriptors that it did not open. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "ways.h"

int main(void)
{
	int said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	CHECK(said >= 100);
	for (int file = 0; file < 3; file++)
		close(file);
	become_loop();
	int taken = 0;
	for (int file = 0; file < 3; file++)
		taken += fcntl(file, F_GETFD) != -1 || write(file, "lost", 4) != -1;
	CHECK(dup2(said, STDERR_FILENO) == STDERR_FILENO);
	CHECK(taken == 0);
	CHECK(close_range(3, ~0U, 0) == 0);
	for (enum way way = 0; way < WAYS; way++)
		for (int at = 0; at < 10; at++)
			CHECK(wait_by(way, -1, at % 2, NULL) == 0);
	CHECK(fcntl(3, F_GETFD) == -1);
	return 0;
}
