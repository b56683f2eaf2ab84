/* Health: what is known of endpoints, and the only writer of their verdicts.
 *
 * Workers send signs (sign.h) through the channels of services; the main thread reads them here, checks endpoints whose
 * service asks for it (probe.h), decides (eject.h, policy.h), and writes a bit of the verdict word, which workers read
 * when they choose.  An endpoint of which nothing is known and that nobody checks has nothing here. */
#ifndef THIMBLE_HEALTH_HEALTH_H
#define THIMBLE_HEALTH_HEALTH_H

#include <stdbool.h>
#include <stdint.h>
#include "dispatch/service.h"
#include "health/policy.h"
#include "health/probe.h"
#include "health/sign.h"
#include "lib/base/chan.h"

#define HEALTH_NEWS_MAX (4u << 20)	/* bytes of signs that may wait to be read */

/* What a line in the log is about. */
enum health_news { HEALTH_EJECTED, HEALTH_BACK, HEALTH_SPARED, HEALTH_UNWELL, HEALTH_WELL, HEALTH_PANIC, HEALTH_CALM };

struct health_ops {
	/* Any thread: health_tend has something to do. */
	void (*wake)(void *ctx);
	/* One line that tells of a change, and why. */
	void (*say)(void *ctx, enum health_news news, const char *line);
	/* The endpoint may have come up, or gone down.  May be NULL. */
	void (*changed)(void *ctx, struct endpoint *e);
	/* What a sign's cause means. */
	const char *(*cause)(uint8_t cause);
	struct probe_ops probe;
};

struct health_counts {
	uint64_t signs;			/* messages read */
	uint64_t ejections;
	uint64_t spared;		/* endpoints that would have been ejected, but too few others are left */
	uint64_t checks, checks_failed;
	uint64_t checks_late;		/* had to wait, for too many are under way */
	uint64_t unwell;		/* endpoints that checks took down */
};

struct health;

/* `usual`: what endpoints are judged by whose number is 0.  `ops` and `ctx` are borrowed.  NULL: no memory. */
struct health *health_new(const struct health_policy *usual, const struct health_ops *ops, void *ctx, uint32_t now) MUST_USE;
/* When no worker sends any more.  NULL is accepted. */
void health_free(struct health *h);

/* As health_policies_number. */
MUST_USE enum err health_number(struct health *h, const struct health_policy *p, uint16_t *number);

/* Where signs go. */
struct chan_reader *health_reader(struct health *h);

/* `s` is served from now on, or has got another set of endpoints: those that are to be checked will be.  Who left is
 * found out by itself.  Without memory some are not checked. */
void health_service(struct health *h, struct service *s);

/* What is due: news, ends of ejections, checks.  In how many ms something will be; -1: not before ops->wake. */
int64_t health_tend(struct health *h, uint32_t now);

struct health_counts health_counts(const struct health *h);

#endif
