/* A loop of root that becomes an unprivileged user, and is late for every release time. Exits with
 * 77 if it can't. */
#define _GNU_SOURCE
#include <sys/resource.h>

#include "antiphon_coop.h"
#include "ways.h"

int main(void)
{
	become_loop();
	const struct rlimit none = { 0 };
	CHECK(setrlimit(RLIMIT_RTPRIO, &none) == 0);
	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 77;
	for (int at = 0; at < 20; at++) {
		int64_t release = now_ns() + 1000000;
		ANTIPHON_COOP_RELEASE(release);
		CHECK(poll(NULL, 0, 0) == 0);
		while (now_ns() < release + 5000000)
			;
	}
	CHECK(poll(NULL, 0, 0) == 0);
	return 0;
}
