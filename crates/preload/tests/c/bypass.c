/* Objects that find the C library's functions before ours because of the way they are loaded, and
 * one that does not. */
#include "check.h"
#include <dlfcn.h>

int main(void)
{
	watchdog();
	YES(dlopen("libm.so.6", RTLD_NOW) != NULL);
	YES(dlopen(NULL, RTLD_NOW) != NULL);
	YES(dlopen("no such library", RTLD_NOW) == NULL);
	YES(dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL);
	YES(dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW) != NULL);
	YES(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) != NULL);
	return failures != 0;
}
