/* The messages of an event loop about itself, when it runs under `antiphon run --coop`.
 *
 * Link against nothing: without the preload library the function is not there, and the macro does
 * nothing. A language with a foreign function interface looks `antiphon_coop_release` up by name
 * (dlsym(3), RTLD_DEFAULT). */
#ifndef ANTIPHON_COOP_H
#define ANTIPHON_COOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells when the calling thread's earliest timer is due: nanoseconds of CLOCK_MONOTONIC, or 0 if it
 * has none. It holds for the next wait of this thread (epoll_wait, poll, select and the like), and
 * is for a loop that waits with a timeout of 0 because it has work: its next timer can't be seen
 * then. Of this time and the end of a timeout the earlier one counts. Does not block and does not
 * fail; may be called from a signal handler. */
__attribute__((weak)) void antiphon_coop_release(uint64_t ns);

#ifdef __cplusplus
}
#endif

/* The same, where the library may not be there. */
#define ANTIPHON_COOP_RELEASE(ns) \
	do { \
		if (antiphon_coop_release) \
			antiphon_coop_release(ns); \
	} while (0)

#endif
