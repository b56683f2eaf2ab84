/* CHECK: for what cannot happen.  Always on; never for input from outside. */
#ifndef THIMBLE_BASE_CHECK_H
#define THIMBLE_BASE_CHECK_H

#define CHECK(cond) \
	do { \
		if (__builtin_expect(!(cond), 0)) \
			check_failed(#cond, __FILE__, __LINE__); \
	} while (0)

/* Writes the place to stderr and aborts. */
_Noreturn void check_failed(const char *cond, const char *file, int line);

#endif
