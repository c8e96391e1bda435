/* All ways to wait for one file to be readable, as one function. */
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "check.h"

enum way { EPOLL, EPOLL_P, EPOLL_P2, POLL, PPOLL, SELECT, PSELECT, WAYS };

/* Waits for `file` (-1: for none) by `way`; `ms` < 0: for good. `mask` as far as the way takes one.
 * Returns what the function does; a new epoll each time. */
static inline int wait_by(enum way way, int file, int64_t ms, const sigset_t *mask)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	struct timeval interval = { ms / 1000, ms % 1000 * 1000 };
	const struct timespec *until = ms < 0 ? NULL : &time;
	struct pollfd one = { .fd = file, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	fd_set set;
	int epoll = -1;
	if (way <= EPOLL_P2) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		CHECK(epoll >= 0);
		CHECK(file < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) == 0);
	}
	FD_ZERO(&set);
	if (file >= 0)
		FD_SET(file, &set);
	int result = -2;
	switch (way) {
	case EPOLL:
		result = epoll_wait(epoll, &event, 1, (int)ms);
		break;
	case EPOLL_P:
		result = epoll_pwait(epoll, &event, 1, (int)ms, mask);
		break;
	case EPOLL_P2:
		result = epoll_pwait2(epoll, &event, 1, until, mask);
		break;
	case POLL:
		result = poll(&one, 1, (int)ms);
		break;
	case PPOLL:
		result = ppoll(&one, 1, until, mask);
		break;
	case SELECT:
		result = select(file + 1, &set, NULL, NULL, ms < 0 ? NULL : &interval);
		break;
	case PSELECT:
		result = pselect(file + 1, &set, NULL, NULL, until, mask);
		break;
	default:
		break;
	}
	int saved = errno;
	if (epoll >= 0)
		close(epoll);
	errno = saved;
	return result;
}

/* Waits often enough that the calling thread is a loop afterwards. */
static inline void become_loop(void)
{
	for (int at = 0; at < 20; at++)
		CHECK(poll(NULL, 0, 0) == 0);
}
