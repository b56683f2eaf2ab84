/* The demo origin: what thimble proxies to when nothing is configured.  It answers every
 * request with what it saw of it, so that one curl shows what went through. */
#ifndef THIMBLE_PROXY_DEMO_H
#define THIMBLE_PROXY_DEMO_H

#include <stdint.h>

/* Serves on 127.0.0.1, on a port that the kernel picks, in a thread of its own, for the life of the
 * process.  The port, or 0 when that failed. */
uint16_t demo_start(void);

#endif
