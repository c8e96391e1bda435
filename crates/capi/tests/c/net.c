/* Sockets and files: fibers of one thread talk to each other and to threads; each error. */
#include "check.h"

#include <antiphon_net.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/un.h>

enum { CLIENTS = 100, ROUNDS = 50, LARGE = 1 << 22 };

static antiphon_pool_t *pool;
static antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
static struct sockaddr_in address;

static void echo(void *argument)
{
	antiphon_file_t *stream = argument;
	char bytes[512];
	size_t read = 0;
	YES(antiphon_fiber_is_fiber());
	while (antiphon_file_read(stream, bytes, sizeof bytes, &read) == 0 && read > 0)
		IS(antiphon_file_write(stream, bytes, read), 0);
	antiphon_file_destroy(stream);
}

static void serve(void *argument)
{
	antiphon_file_t *listener = argument, *stream;
	int client;
	for (client = 0; client < CLIENTS + 1; client++) {
		struct sockaddr_in from;
		socklen_t bytes = sizeof from;
		IS(antiphon_net_accept(listener, &stream, (struct sockaddr *)&from, &bytes), 0);
		IS(bytes, sizeof from);
		IS(from.sin_family, AF_INET);
		antiphon_pool_spawn(pool, &group, echo, stream);
	}
}

static void ask(void *argument)
{
	antiphon_file_t *stream;
	int round;
	(void)argument;
	IS(antiphon_net_connect(&stream, (struct sockaddr *)&address, sizeof address), 0);
	for (round = 0; round < ROUNDS; round++) {
		int answer = -1;
		size_t at = 0, read;
		IS(antiphon_file_write(stream, &round, sizeof round), 0);
		for (; at < sizeof answer; at += read) {
			IS(antiphon_file_read(stream, (char *)&answer + at, sizeof answer - at,
					      &read),
			   0);
			YES(read > 0);
		}
		IS(answer, round);
	}
	antiphon_file_destroy(stream);
}

static antiphon_file_t *listen_here(void)
{
	antiphon_file_t *listener;
	socklen_t bytes = sizeof address;
	memset(&address, 0, sizeof address);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	IS(antiphon_net_listen(&listener, (struct sockaddr *)&address, sizeof address), 0);
	IS(getsockname(antiphon_file_number(listener), (struct sockaddr *)&address, &bytes), 0);
	return listener;
}

static void connections(size_t threads)
{
	antiphon_file_t *listener = listen_here();
	int client;
	IS(antiphon_fiber_pool_create(&pool, threads, NULL, 0), 0);
	antiphon_pool_spawn(pool, &group, serve, listener);
	for (client = 0; client < CLIENTS; client++)
		antiphon_pool_spawn(pool, &group, ask, NULL);
	/* A thread beside them. */
	ask(NULL);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
	antiphon_file_destroy(listener);
}

static void write_large(void *argument)
{
	char *bytes = malloc(LARGE);
	memset(bytes, 9, LARGE);
	IS(antiphon_file_write(argument, bytes, LARGE), 0);
	antiphon_file_destroy(argument);
	free(bytes);
}

static void read_large(void *argument)
{
	static char bytes[1 << 16];
	size_t all = 0, read;
	while (antiphon_file_read(argument, bytes, sizeof bytes, &read) == 0 && read > 0)
		all += read;
	IS(all, LARGE);
	antiphon_file_destroy(argument);
}

/* A pipe: more than it has room for. */
static void pipes(void)
{
	antiphon_file_t *ends[2];
	int pair[2];
	IS(antiphon_fiber_pool_create(&pool, 1, NULL, 0), 0);
	IS(pipe(pair), 0);
	IS(antiphon_file_create(&ends[0], pair[0]), 0);
	IS(antiphon_file_create(&ends[1], pair[1]), 0);
	antiphon_pool_spawn(pool, &group, read_large, ends[0]);
	antiphon_pool_spawn(pool, &group, write_large, ends[1]);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
}

static void times(void *argument)
{
	antiphon_file_t *listener = argument, *stream = NULL, *ends[2];
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5), past = { 0, 0 };
	char byte = 1;
	char *large = calloc(1, LARGE);
	size_t count = 0;
	int pair[2];
	IS(antiphon_net_timedaccept(listener, &stream, NULL, NULL, CLOCK_MONOTONIC, &soon),
	   ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	YES(stream == NULL);
	IS(antiphon_net_timedaccept(listener, &stream, NULL, NULL, 77, &soon), EINVAL);
	IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	IS(antiphon_file_create(&ends[0], pair[0]), 0);
	IS(antiphon_file_create(&ends[1], pair[1]), 0);
	IS(antiphon_file_timedread(ends[0], &byte, 1, &count, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	IS(antiphon_file_timedwait(ends[0], ANTIPHON_FILE_READS, CLOCK_MONOTONIC, &soon),
	   ETIMEDOUT);
	IS(antiphon_file_wait(ends[0], ANTIPHON_FILE_WRITES), 0);
	IS(antiphon_file_wait(ends[0], 2), EINVAL);
	soon = in_ms(CLOCK_MONOTONIC, 20);
	IS(antiphon_file_timedwrite(ends[1], large, LARGE, &count, CLOCK_MONOTONIC, &soon),
	   ETIMEDOUT);
	YES(count > 0 && count < LARGE);
	IS(antiphon_file_wait(ends[0], ANTIPHON_FILE_READS), 0);
	IS(antiphon_file_timedread(ends[0], large, LARGE, &count, CLOCK_MONOTONIC, &soon), 0);
	YES(count > 0);
	antiphon_file_destroy(ends[0]);
	/* No signal. */
	IS(antiphon_file_write(ends[1], &byte, 1), EPIPE);
	antiphon_file_destroy(ends[1]);
	free(large);
}

static void refused(void)
{
	struct sockaddr_un nowhere = { .sun_family = AF_UNIX, .sun_path = "/nowhere/at/all" };
	antiphon_file_t *listener = listen_here(), *file = NULL;
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 1000);
	char byte;
	size_t read = 9;
	int number = -1;
	/* A fiber, and a thread. */
	IS(antiphon_fiber_pool_create(&pool, 1, NULL, 0), 0);
	antiphon_pool_spawn(pool, &group, times, listener);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
	times(listener);
	IS(antiphon_net_listen(&file, (struct sockaddr *)&address, sizeof address), EADDRINUSE);
	antiphon_file_destroy(listener);
	IS(antiphon_net_connect(&file, (struct sockaddr *)&address, sizeof address), ECONNREFUSED);
	IS(antiphon_net_timedconnect(&file, (struct sockaddr *)&address, sizeof address,
				     CLOCK_MONOTONIC, &soon),
	   ECONNREFUSED);
	IS(antiphon_net_connect(&file, (struct sockaddr *)&nowhere, sizeof nowhere), ENOENT);
	IS(antiphon_file_create(&file, -1), EBADF);
	YES(file == NULL);
	number = eventfd(0, 0);
	IS(antiphon_file_create(&file, number), 0);
	YES(fcntl(number, F_GETFL) & O_NONBLOCK);
	IS(antiphon_file_release(file, &number), 0);
	IS(antiphon_file_create(&file, number), 0);
	IS(antiphon_file_read(file, &byte, 1, &read), EINVAL);
	number = -1;
	IS(antiphon_file_release(file, &number), 0);
	YES(number >= 0 && !(fcntl(number, F_GETFL) & O_NONBLOCK));
	IS(close(number), 0);
}

int main(void)
{
	watchdog();
	connections(1);
	connections(2);
	pipes();
	refused();
	return failures != 0;
}
