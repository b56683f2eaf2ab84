/* Results of what can fail.  Out-parameters are untouched on failure. */
#ifndef THIMBLE_BASE_ERR_H
#define THIMBLE_BASE_ERR_H

#define MUST_USE __attribute__((warn_unused_result))

enum err {
	OK = 0,
	ERR_MEM,	/* no memory, or the byte budget refused */
	ERR_LIMIT,	/* a configured limit would be passed */
	ERR_SYS,	/* a system call failed; errno says why */
	ERR_SYNTAX,	/* input that is not what it should be */
};

#endif
