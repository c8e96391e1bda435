/* An echo server: a fiber for each connection, all on two threads. Its clients are fibers, too.
 *
 *	cc echo.c $(pkg-config --cflags --libs antiphon) -pthread -o echo */
#include <antiphon_net.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 200, QUESTIONS = 20 };

static antiphon_pool_t *pool;
static antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
static struct sockaddr_in address;
static uint64_t answers;

static void serve(void *argument)
{
	antiphon_file_t *stream = argument;
	char bytes[1024];
	size_t read;
	/* Waits, and its thread serves others. */
	while (antiphon_file_read(stream, bytes, sizeof bytes, &read) == 0 && read > 0)
		if (antiphon_file_write(stream, bytes, read) != 0)
			break;
	antiphon_file_destroy(stream);
}

static void accept_all(void *argument)
{
	antiphon_file_t *listener = argument, *stream;
	for (int client = 0; client < CLIENTS; client++)
		if (antiphon_net_accept(listener, &stream, NULL, NULL) == 0)
			antiphon_pool_spawn(pool, &group, serve, stream);
}

static void ask(void *argument)
{
	antiphon_file_t *stream;
	char question[] = "to and fro", answer[sizeof question];
	(void)argument;
	if (antiphon_net_connect(&stream, (struct sockaddr *)&address, sizeof address) != 0)
		return;
	for (int number = 0; number < QUESTIONS; number++) {
		size_t at = 0, read = 1;
		if (antiphon_file_write(stream, question, sizeof question) != 0)
			break;
		for (; at < sizeof answer && read > 0; at += read)
			if (antiphon_file_read(stream, answer + at, sizeof answer - at, &read) != 0)
				break;
		if (at == sizeof answer && memcmp(question, answer, sizeof answer) == 0)
			__atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);
	}
	antiphon_file_destroy(stream);
}

int main(void)
{
	antiphon_file_t *listener;
	socklen_t bytes = sizeof address;
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (antiphon_net_listen(&listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    getsockname(antiphon_file_number(listener), (struct sockaddr *)&address, &bytes) != 0 ||
	    antiphon_fiber_pool_create(&pool, 2, NULL, 0) != 0)
		return 1;
	antiphon_pool_spawn(pool, &group, accept_all, listener);
	for (int client = 0; client < CLIENTS; client++)
		antiphon_pool_spawn(pool, &group, ask, NULL);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
	antiphon_file_destroy(listener);
	printf("%d clients, %lu answers, 2 threads\n", CLIENTS, (unsigned long)answers);
	return 0;
}
