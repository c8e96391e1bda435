// yes: three functions, each with data of its own, share one lock. no: one function does it all.
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool many;

static void __attribute__((noinline)) write_log(void)
{
	pthread_mutex_lock(&lock);
	usleep(1500);
	pthread_mutex_unlock(&lock);
}

static void __attribute__((noinline)) count_users(void)
{
	pthread_mutex_lock(&lock);
	usleep(1500);
	pthread_mutex_unlock(&lock);
}

static void __attribute__((noinline)) reload_rules(void)
{
	pthread_mutex_lock(&lock);
	usleep(1500);
	pthread_mutex_unlock(&lock);
}

static void *work(void *number)
{
	for (int i = 0; i < 60; i++) {
		switch (many ? (long)number : 0) {
		case 0: write_log(); break;
		case 1: count_users(); break;
		default: reload_rules(); break;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	many = asked(argc, argv);
	together(3, work);
}
