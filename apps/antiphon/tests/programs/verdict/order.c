// yes: one thread takes two locks in one order, and the next in the other. no: both in one order.
#include "common.h"

static pthread_mutex_t from = PTHREAD_MUTEX_INITIALIZER, to = PTHREAD_MUTEX_INITIALIZER;
static bool turned;

static void move(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *there(void *unused)
{
	move(&from, &to);
	return unused;
}

static void *back(void *unused)
{
	if (turned)
		move(&to, &from);
	else
		move(&from, &to);
	return unused;
}

int main(int argc, char **argv)
{
	turned = asked(argc, argv);
	together(1, there);
	together(1, back);
}
