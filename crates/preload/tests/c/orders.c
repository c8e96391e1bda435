/* Locks that are taken in several orders, some of them dangerous: the argument says which. Every
 * lock function is called from a place of its own. */
#include "check.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;

#define LOCK(mutex) pthread_mutex_lock(mutex)
#define UNLOCK(mutex) pthread_mutex_unlock(mutex)
#define WITHIN(outer, inner) \
	do { \
		LOCK(outer); \
		LOCK(inner); \
		UNLOCK(inner); \
		UNLOCK(outer); \
	} while (0)

/* Another mutex at the address of b, as after `free` and `malloc`; programs don't always destroy
 * the first. */
static void renew(int destroy)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	if (destroy)
		pthread_mutex_destroy(&b);
	b = fresh;
}

static void reused(void)
{
	for (int round = 0; round < 4; round++) {
		WITHIN(&a, &b);
		renew(round & 1);
		WITHIN(&b, &a);
		if (round & 1)
			pthread_mutex_init(&b, NULL);
		else
			renew(1);
	}
}

static void guarded(void)
{
	LOCK(&guard);
	WITHIN(&a, &b);
	UNLOCK(&guard);
	LOCK(&guard);
	LOCK(&c);
	WITHIN(&b, &a);
	UNLOCK(&c);
	UNLOCK(&guard);
}

/* Many acquisitions in one order, one in the other, and many in the first again. */
static void seldom(void)
{
	for (int round = 0; round < 20; round++) {
		renew(round & 1);
		WITHIN(&a, &b);
		if (round == 10)
			WITHIN(&b, &a);
	}
}

int main(int count, char **arguments)
{
	const char *how = count == 2 ? arguments[1] : "";
	watchdog();
	if (!strcmp(how, "reused"))
		reused();
	else if (!strcmp(how, "guarded"))
		guarded();
	else if (!strcmp(how, "seldom"))
		seldom();
	else {
		WITHIN(&a, &b);
		if (!strcmp(how, "ring"))
			WITHIN(&b, &c);
		if (!strcmp(how, "ring"))
			WITHIN(&c, &a);
		if (!strcmp(how, "both"))
			WITHIN(&b, &a);
	}
	return failures != 0;
}
