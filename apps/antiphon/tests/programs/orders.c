/* Two pairs of locks. One is taken in both orders, by functions whose names say so; the other one
 * too, but never without a third lock. Exits with 7. */
#include <pthread.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* Each in a function of its own, that is called and not inlined. */
#define APART __attribute__((noinline, noipa))

APART void take_left(void) { pthread_mutex_lock(&left); __asm__ volatile(""); }
APART void take_right(void) { pthread_mutex_lock(&right); __asm__ volatile(""); }
APART void take_left_after(void) { pthread_mutex_lock(&left); __asm__ volatile(""); }
APART void take_right_after(void) { pthread_mutex_lock(&right); __asm__ volatile(""); }

APART void pair(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void release(void)
{
	pthread_mutex_unlock(&left);
	pthread_mutex_unlock(&right);
}

static void *forth(void *rounds)
{
	for (int round = 0; round < *(int *)rounds; round++) {
		take_left();
		take_right_after();
		release();
		pthread_mutex_lock(&guard);
		pair(&outer, &inner);
		pthread_mutex_unlock(&guard);
	}
	return 0;
}

static void *back(void *unused)
{
	(void)unused;
	take_right();
	take_left_after();
	release();
	pthread_mutex_lock(&guard);
	pair(&inner, &outer);
	pthread_mutex_unlock(&guard);
	return 0;
}

int main(void)
{
	int rounds = 3;
	pthread_t thread;
	pthread_create(&thread, 0, forth, &rounds);
	pthread_join(thread, 0);
	pthread_create(&thread, 0, back, 0);
	pthread_join(thread, 0);
	return 7;
}
