/* Another try: what becomes of an exchange whose try has ended without an answer for the client.  dispatch/retry.h
 * decides; here the exchange is taken there. */
#ifndef THIMBLE_PROXY_RETRYING_H
#define THIMBLE_PROXY_RETRYING_H

#include "dispatch/retry.h"
#include "proxy/exchange.h"

/* An answer that is kept while another is asked for is no longer than that; a longer one goes to the client. */
#define RETRYING_ANSWER_MAX (64u * 1024)

/* What routes without `retry` do. */
extern const struct retry_policy retrying_default;

/* The last answer that an endpoint gave, until there is a better one. */
struct spare {
	struct arena arena;
	struct head head;	/* in `arena` */
	struct buf *body;	/* owned */
	bool whole;
};

/* The try is over, by `cause`, and the client got nothing of it: another one, now or in a moment, or exchange_fail. */
void retrying_lost(struct exchange *x, enum cause cause);

/* A final answer's head is here, of 400 or above.  True: it is kept, for another try (x->holding): its body goes to
 * retrying_body, then retrying_whole. */
bool retrying_hold(struct exchange *x, const struct head *h);
/* False: it is too large, and goes on to the client: x->spare has all that came. */
bool retrying_body(struct exchange *x, struct str piece);
/* Its end is here; `extra`: bytes came behind it. */
void retrying_whole(struct exchange *x, bool extra);
/* Its end will not come, for `cause`. */
void retrying_spoiled(struct exchange *x, enum cause cause);

/* Instead of failing for `cause`: the answer that was kept goes to the client; false: there is none. */
bool retrying_spare(struct exchange *x, enum cause cause);
/* Gives it back; NULL is accepted. */
void retrying_spare_free(struct exchange *x);

/* The pause is over. */
void retrying_resume(struct exchange *x);

/* How long the endpoint has to answer, when it is not the first try. */
uint32_t retrying_try_ms(const struct exchange *x);

/* Counts a request to the exchange's service, which more retries may follow. */
void retrying_count_slowly(struct worker *w, uint32_t service);
static inline void retrying_count(struct worker *w, uint32_t service)
{
	if (service < w->n_asked)
		w->asked[service]++;
	else
		retrying_count_slowly(w, service);
}

#endif
