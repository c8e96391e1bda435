// Eight threads write to streams, in many short calls. yes: to one. no: each to its own.
#include "common.h"

static FILE *one;

static void *work(void *unused)
{
	char text[4096];
	FILE *stream = one ? one : fopen("/dev/null", "w");
	memset(text, 'x', sizeof text);
	for (int i = 0; i < 200; i++) {
		flockfile(stream);
		for (int part = 0; part < 30; part++)
			fwrite(text, 1, sizeof text, stream);
		// A slow device: the stream stays locked.
		usleep(200);
		funlockfile(stream);
	}
	if (!one)
		fclose(stream);
	return unused;
}

int main(int argc, char **argv)
{
	if (asked(argc, argv))
		one = fopen("/dev/null", "w");
	together(8, work);
}
