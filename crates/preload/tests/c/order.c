/* Locks taken one within the other, some of them only tried: no thread can be stuck at those. */
#include "check.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	watchdog();
	/* b is tried within a, and a waited for within b: no danger. */
	pthread_mutex_lock(&a);
	IS(pthread_mutex_trylock(&b), 0);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	/* d within a and c, of which c was tried; then a within d: a danger. */
	pthread_mutex_lock(&a);
	IS(pthread_mutex_trylock(&c), 0);
	pthread_mutex_lock(&d);
	pthread_mutex_unlock(&d);
	pthread_mutex_unlock(&c);
	pthread_mutex_unlock(&a);
	pthread_mutex_lock(&d);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&d);
	return failures != 0;
}
