/* Within health: what is known of one endpoint, and the numbers under which that is found. */
#ifndef THIMBLE_HEALTH_RECORD_H
#define THIMBLE_HEALTH_RECORD_H

#include "health/health.h"
#include "health/wheel.h"

struct record {
	struct wheel_item check;	/* first: when it is checked next */
	struct wheel_item look;		/* when its ejection is over, or it is looked whether all this may be forgotten */
	struct endpoint *endpoint;	/* owned reference */
	const struct health_policy *policy;	/* borrowed */
	struct eject eject;
	struct rise rise;
	uint8_t good;			/* checks in a row that went well while it is ejected */
	bool check_waits, look_waits;	/* which wheels it is in */
	bool checking;			/* a check is under way */
};

static inline struct record *record_of_look(struct wheel_item *i)
{
	return (struct record *)((char *)i - offsetof(struct record, look));
}

struct health {
	const struct health_ops *ops;	/* borrowed */
	void *ctx;			/* borrowed */
	struct chan_reader reader;
	struct health_policies policies;
	struct chan_node *settling;	/* signs that were taken and not read yet; `next` of each */
	struct record **records;	/* owned: by the endpoint's index */
	uint32_t n_records;		/* room */
	struct wheel checks, looks;	/* of records */
	struct record *late, **late_end;	/* borrowed: whose check is due but has no room, the longest first */
	struct prober *prober;		/* owned; NULL: nothing was checked yet */
	struct service **watched;	/* owned references: services that may panic; channel.owner - 1 is the place */
	uint32_t n_watched, max_watched;
	bool changed;			/* a verdict, since panics were looked at */
	uint64_t random;
	uint32_t now, heard;		/* ms: of this turn; of when news was read */
	struct health_counts counts;
};

/* What is known of `e`, made if need be; NULL: no memory. */
struct record *record_get(struct health *h, struct endpoint *e);
/* Frees it when it waits for nothing, and nothing of it matters any more. */
void record_tidy(struct health *h, struct record *r, uint32_t now);
/* Has it looked at some time. */
void record_look_later(struct health *h, struct record *r, uint32_t now);

/* The verdict, one bit of it. */
void record_judge(struct health *h, struct record *r, uint32_t bit, bool down);
/* Tells of it. */
void record_changed(struct health *h, struct endpoint *e);

/* Tells of a change. */
void health_say(struct health *h, enum health_news news, const struct record *r, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Its ejection is over. */
void record_back(struct health *h, struct record *r, uint32_t now, const char *why);

/* Services with too few endpoints that are well have all of them used (panic.c). */
void panic_watch(struct health *h, struct service *s);
void panic_look(struct health *h);
void panic_end(struct health *h);

#endif
