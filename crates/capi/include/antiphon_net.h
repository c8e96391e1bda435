/* antiphon_net.h: files and sockets for fibers: while a fiber waits, its thread runs others.
 *
 *	antiphon_net_accept(listener, &stream, NULL, NULL);
 *	while (antiphon_file_read(stream, bytes, sizeof bytes, &read) == 0 && read > 0)
 *		if (antiphon_file_write(stream, bytes, read) != 0)
 *			break;
 *	antiphon_file_destroy(stream);
 *
 * A file is anything that poll(2) takes: a socket, a pipe, an eventfd. Threads may also wait for
 * it, and sleep; several may use one file at a time. The file is set to O_NONBLOCK, and so are its
 * duplicates, also in other processes. A file on a disk is always ready, and blocks.
 *
 * Functions return 0 or an error number of the system call, and never EAGAIN or EINTR. EPERM: the
 * file cannot be waited for. A deadline of the realtime clock is converted at the call: setting the
 * clock later does not change it. errno may change. For fibers, pools and memory the rules of
 * antiphon_fiber.h hold. In a forked child, files must be made again. */

#ifndef ANTIPHON_NET_H
#define ANTIPHON_NET_H

#include <sys/socket.h>

#include "antiphon_fiber.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A file that can be waited for. */
typedef struct antiphon_file antiphon_file_t;

/* Directions of a wait. */
enum antiphon_file_way {
	/* Data to read or a connection to accept; or the end, or an error. */
	ANTIPHON_FILE_READS = 0,
	/* Room to write; or an error. */
	ANTIPHON_FILE_WRITES = 1
};

/* --- files --- */

/* Takes over the file descriptor `number`: it may be in one antiphon_file_t at a time, and is
 * closed only by antiphon_file_destroy. EBADF: it is not open; then nothing was taken over. */
ANTIPHON_MUST_USE
int antiphon_file_create(antiphon_file_t **file, int number) ANTIPHON_NOEXCEPT;

/* Closes the file. No thread may wait for it. */
void antiphon_file_destroy(antiphon_file_t *file) ANTIPHON_NOEXCEPT;

/* Gives the descriptor back, blocking again, and frees `file`. If it fails, the file is closed. */
ANTIPHON_MUST_USE
int antiphon_file_release(antiphon_file_t *file, int *number) ANTIPHON_NOEXCEPT;

/* Returns the descriptor, for calls that don't block: getpeername, setsockopt, shutdown. */
int antiphon_file_number(const antiphon_file_t *file) ANTIPHON_NOEXCEPT;

/* Waits until the file is ready in direction `way`; another thread may have used up the readiness
 * by then. EINVAL: no such direction. For calls of your own, such as recvmsg: make the call, and if
 * it would block, wait and make it again. */
ANTIPHON_MUST_USE
int antiphon_file_wait(antiphon_file_t *file, int way) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_file_timedwait(antiphon_file_t *file, int way, int clock,
			    const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Reads at most `count` bytes; waits for at least one. Stores their number in `read`; 0 is the end,
 * unless `count` is 0. */
ANTIPHON_MUST_USE
int antiphon_file_read(antiphon_file_t *file, void *bytes, size_t count,
		       size_t *read) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL; and as antiphon_file_read. */
ANTIPHON_MUST_USE
int antiphon_file_timedread(antiphon_file_t *file, void *bytes, size_t count, size_t *read,
			    int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Writes all bytes; waits for room as often as necessary. EPIPE: there is no reader; a socket sends
 * no SIGPIPE then. */
ANTIPHON_MUST_USE
int antiphon_file_write(antiphon_file_t *file, const void *bytes, size_t count) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL; and as antiphon_file_write. Stores the number of written bytes in `written`,
 * unless it returns EINVAL. */
ANTIPHON_MUST_USE
int antiphon_file_timedwrite(antiphon_file_t *file, const void *bytes, size_t count,
			     size_t *written, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* --- stream sockets: TCP, or of the family of the address --- */

/* Makes a socket that listens on the address, with SO_REUSEADDR. Never waits. */
ANTIPHON_MUST_USE
int antiphon_net_listen(antiphon_file_t **listener, const struct sockaddr *address,
			socklen_t bytes) ANTIPHON_NOEXCEPT;

/* Waits for a connection. `address` and `bytes` are those of accept(2), or both NULL. */
ANTIPHON_MUST_USE
int antiphon_net_accept(antiphon_file_t *listener, antiphon_file_t **stream,
			struct sockaddr *address, socklen_t *bytes) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_net_timedaccept(antiphon_file_t *listener, antiphon_file_t **stream,
			     struct sockaddr *address, socklen_t *bytes, int clock,
			     const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Connects, and waits for that. A Unix socket with a full backlog returns ETIMEDOUT at once. */
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
