/* antiphon_net.h: files and sockets that a fiber waits for as a thread does: its thread runs others
 * meanwhile.
 *
 *	antiphon_net_accept(listener, &stream, NULL, NULL);
 *	while (antiphon_file_read(stream, bytes, sizeof bytes, &read) == 0 && read > 0)
 *		if (antiphon_file_write(stream, bytes, read) != 0)
 *			break;
 *	antiphon_file_destroy(stream);
 *
 * A file is anything that poll(2) takes: a socket, a pipe, an eventfd. Threads wait for it, too,
 * and sleep; several at a time may use one. It does not block any more (O_NONBLOCK), nor do its
 * duplicates, in other processes, too. A file that is on a disk is always ready, and blocks.
 *
 * Functions return 0 or an error number of the system's, as its calls have it, and never EAGAIN or
 * EINTR. EPERM: it is none that can be waited for. A deadline on the realtime clock is one of the
 * monotonic clock from the call on: who sets the clock does not change it. Of errno nothing is
 * promised here. Fibers, pools and memory are as antiphon_fiber.h says; in a forked child, files
 * are made anew. */

#ifndef ANTIPHON_NET_H
#define ANTIPHON_NET_H

#include <sys/socket.h>

#include "antiphon_fiber.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A file that one waits for. */
typedef struct antiphon_file antiphon_file_t;

/* What one waits for. */
enum antiphon_file_way {
	/* Something to read, or to accept; or the end, or an error. */
	ANTIPHON_FILE_READS = 0,
	/* Room to write; or an error. */
	ANTIPHON_FILE_WRITES = 1
};

/* --- files --- */

/* Takes the file of that number over: it is in one antiphon_file_t at a time, and is not closed but
 * by antiphon_file_destroy. EBADF: it is not open; then nothing was taken. */
ANTIPHON_MUST_USE
int antiphon_file_create(antiphon_file_t **file, int number) ANTIPHON_NOEXCEPT;

/* Closes it. Nobody waits for it. */
void antiphon_file_destroy(antiphon_file_t *file) ANTIPHON_NOEXCEPT;

/* Gives the file back, which blocks again; `file` is gone. If it fails, the file is closed. */
ANTIPHON_MUST_USE
int antiphon_file_release(antiphon_file_t *file, int *number) ANTIPHON_NOEXCEPT;

/* The number of the file, for calls that don't block: getpeername, setsockopt, shutdown. */
int antiphon_file_number(const antiphon_file_t *file) ANTIPHON_NOEXCEPT;

/* Waits until there is something to do that way; by then another may have done it. EINVAL: there is
 * no such way. For calls of one's own, as recvmsg: make the call, and where it would block, wait,
 * and make it again. */
ANTIPHON_MUST_USE
int antiphon_file_wait(antiphon_file_t *file, int way) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_file_timedwait(antiphon_file_t *file, int way, int clock,
			    const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Reads `count` bytes at most; waits for one at least. `read` is how many; 0 is the end, unless
 * `count` is 0. */
ANTIPHON_MUST_USE
int antiphon_file_read(antiphon_file_t *file, void *bytes, size_t count,
		       size_t *read) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL; and as antiphon_file_read. */
ANTIPHON_MUST_USE
int antiphon_file_timedread(antiphon_file_t *file, void *bytes, size_t count, size_t *read,
			    int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Writes all; waits for room as often as it has to. EPIPE: nobody reads; a socket sends no SIGPIPE
 * then. */
ANTIPHON_MUST_USE
int antiphon_file_write(antiphon_file_t *file, const void *bytes, size_t count) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL; and as antiphon_file_write. `written` is how many bytes were, whatever is
 * returned but EINVAL. */
ANTIPHON_MUST_USE
int antiphon_file_timedwrite(antiphon_file_t *file, const void *bytes, size_t count,
			     size_t *written, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- stream sockets: TCP, or of the family that the address is of --- */

/* Listens on the address, with SO_REUSEADDR. Never waits. */
ANTIPHON_MUST_USE
int antiphon_net_listen(antiphon_file_t **listener, const struct sockaddr *address,
			socklen_t bytes) ANTIPHON_NOEXCEPT;

/* Waits for a connection. `address` and `bytes` are as of accept(2), or both NULL. */
ANTIPHON_MUST_USE
int antiphon_net_accept(antiphon_file_t *listener, antiphon_file_t **stream,
			struct sockaddr *address, socklen_t *bytes) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_net_timedaccept(antiphon_file_t *listener, antiphon_file_t **stream,
			     struct sockaddr *address, socklen_t *bytes, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Connects; waits for that. A Unix socket whose line is full is ETIMEDOUT at once. */
ANTIPHON_MUST_USE
int antiphon_net_connect(antiphon_file_t **stream, const struct sockaddr *address,
			 socklen_t bytes) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_net_timedconnect(antiphon_file_t **stream, const struct sockaddr *address,
			      socklen_t bytes, int clock,
			      const struct timespec *until) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif
