// Checks of programs in C++, which report a failure: as check.h, for these.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <system_error>

static int failures;
#define YES(condition)                                                                             \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			std::fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);   \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

// The code that a call throws, 0 if it throws nothing.
template <class Call>
int thrown(Call call)
{
	try {
		call();
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return 0;
}

#endif
