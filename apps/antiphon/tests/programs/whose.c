/* Says whose lock is in a recursive mutex, by where its count stands: glibc's at 4, ours at 12. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	for (int level = 0; level < 3; level++)
		pthread_mutex_lock(&mutex);
	unsigned theirs, ours;
	memcpy(&theirs, (char *)&mutex + 4, sizeof theirs);
	memcpy(&ours, (char *)&mutex + 12, sizeof ours);
	puts(theirs == 3 ? "glibc" : ours == 3 ? "ours" : "nobody knows");
	return 0;
}
