/* Condition: where the room health meets the rest: the configuration that says how endpoints are judged, and the log,
 * the descriptors and the TLS that it uses. */
#ifndef THIMBLE_PROXY_CONDITION_H
#define THIMBLE_PROXY_CONDITION_H

#include "dispatch/snapshot.h"
#include "health/health.h"
#include "lib/base/arena.h"

struct conf_service;
struct server;
struct settings;

/* s->health; ERR_MEM.  `settings` is borrowed. */
MUST_USE enum err condition_init(struct server *s, const struct settings *settings, uint32_t now_ms);

/* The number of the rules by which endpoints of `c` are judged; 0 when `h` is NULL.  `a` has what is needed meanwhile.
 * ERR_MEM, ERR_LIMIT. */
MUST_USE enum err condition_number(struct health *h, const struct conf_service *c, struct arena *a, uint16_t *number);

/* Its services are served from now on. */
void condition_begin(struct health *h, const struct snapshot *s);

/* What the counters add to the line at the end, " name=1 ..."; `n` bytes of room. */
size_t condition_counts(const struct health *h, char *to, size_t n);

#endif
