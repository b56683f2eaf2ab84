/* local: see local.h.
 *
 * An answer is a neutral head and a body, put through the client's codec like any other,
 * so that framing, HEAD and HTTP/1.0 are no concern here.  When the request was not read to
 * its end the connection closes behind the answer, and lingers, so that the answer is not lost. */
#include "proxy/local.h"

#include "lib/base/check.h"
#include "lib/base/num.h"
#include "proxy/answer.h"
#include "proxy/compress.h"
#include "proxy/forward.h"

#define LOCAL_FIELDS 80
#define FIELDS_OURS 16		/* of them for what is added here, by the listener and by compression */

struct local {
	unsigned status;
	struct str type, body, location, proxy_status, retry_after;
	const struct head *said;	/* fields of somebody else; may be NULL */
	bool edits;	/* the route's edits apply */
	bool theirs;	/* `said` is the whole head: an endpoint's */
};

unsigned local_room(const struct exchange *x)
{
	return FIELDS_OURS + forward_added(x);
}

/* The fields that were said by somebody else, if any, with room for all that may be added; false: no memory. */
static bool take_fields(struct exchange *x, const struct head *said, struct head *h)
{
	size_t n = said ? said->n_fields : 0, max = n + local_room(x);

	if (max > h->max_fields) {
		h->field = arena_alloc(&x->arena, max * sizeof *h->field);
		if (!h->field)
			return false;
		h->max_fields = (uint16_t)(max < UINT16_MAX ? max : UINT16_MAX);
	}
	if (n)
		memcpy(h->field, said->field, n * sizeof *h->field);
	h->n_fields = (uint16_t)n;
	return true;
}

static enum err put(struct exchange *x, const struct local *l)
{
	struct str body = l->body;
	struct field fields[LOCAL_FIELDS];
	struct head h = {
		.status = (uint16_t)l->status, .reason = status_reason(l->status), .minor = 1,
		.field = fields, .max_fields = LOCAL_FIELDS,
		.body = BODY_SIZED, .length = l->body.n, .has_length = true,
	};
	struct vec *v = &x->w->vec;
	enum err err = OK;

	if (l->theirs)
		h.reason = l->said->reason;
	if (x->method == METHOD_HEAD || l->status == 304 || l->status == 204 || l->body.n == 0)
		h.body = BODY_NONE;
	if (l->theirs && h.body == BODY_NONE) {
		h.has_length = l->said->has_length;
		h.length = l->said->length;
	}
	if (!take_fields(x, l->said, &h))
		return ERR_MEM;
	if (l->type.n && l->body.n)
		err = head_add(&h, STR("Content-Type"), l->type);
	if (err == OK && l->location.n)
		err = head_add(&h, STR("Location"), l->location);
	if (err == OK && l->proxy_status.n)
		err = head_add(&h, STR("Proxy-Status"), l->proxy_status);
	if (err == OK && l->retry_after.n)
		err = head_add(&h, STR("Retry-After"), l->retry_after);
	if (err == OK && forward_own_answer(x, &h, l->edits) != CAUSE_NONE)
		err = ERR_LIMIT;
	if (err == OK && l->edits && x->compress && compress_whole(x, &h, &body) != CAUSE_NONE)
		err = ERR_LIMIT;
	if (err == OK)
		err = codec_put_head(&x->server.codec, 0, &h, v);
	if (err == OK && h.body == BODY_SIZED) {
		err = codec_put_body(&x->server.codec, 0, body, v);
		x->bytes_out += body.n;
	}
	return err == OK ? codec_put_end(&x->server.codec, 0, NULL, v) : err;
}

static void answer(struct exchange *x, const struct local *l)
{
	struct worker *w = x->w;

	exchange_move(x, MOVE_REFUSE);
	buf_free(&x->to_up, &w->budget);
	buf_free(&x->up_in, &w->budget);
	vec_reset(&w->vec);
	if (x->request != DIR_DONE) {
		x->request = DIR_CUT;
		x->client_closing = true;
	}
	if (x->client_closing || w->draining)
		h1_close_after(&x->server);
	x->status = (uint16_t)l->status;
	worker_count_status(w, l->status);
	worker_wait_end(x->client);
	if (put(x, l) != OK) {
		vec_reset(&w->vec);
		exchange_cut(x, CAUSE_NO_MEMORY);
	} else if (answer_flush(x) && !x->to_client) {
		exchange_move(x, MOVE_FLUSHED);
	}
}

static struct str join(struct arena *a, struct str s, struct str t, struct str u)
{
	char *p = arena_alloc(a, s.n + t.n + u.n);

	if (!p)
		return (struct str){0};
	memcpy(p, s.p, s.n);
	memcpy(p + s.n, t.p, t.n);
	memcpy(p + s.n + t.n, u.p, u.n);
	return (struct str){ p, s.n + t.n + u.n };
}

void local_cause(struct exchange *x, enum cause cause)
{
	const struct cause_info *info = &causes[cause];
	struct local l = { .status = info->status, .type = STR("text/plain; charset=utf-8") };
	struct str text = info->text;
	char number[4];

	x->cause = (uint8_t)cause;
	COUNT(x->w, cause[cause]);
	if (cause == CAUSE_BAD_REQUEST && x->fault != FAULT_NONE) {
		l.status = codec_fault_status(x->fault);
		text = codec_fault_text(x->fault);
	}
	CHECK(l.status);
	num_dec(number, l.status);
	number[3] = ' ';
	l.body = join(&x->arena, (struct str){ number, 4 }, status_reason(l.status), STR(": "));
	l.body = join(&x->arena, l.body, text, STR("\n"));
	if (info->error.n)
		l.proxy_status = join(&x->arena, STR("thimble; error="), info->error, STR(""));
	if (cause == CAUSE_QUEUE_FULL || cause == CAUSE_QUEUE_TIMEOUT)
		l.retry_after = STR("1");	/* a service that is overloaded now may not be for long */
	answer(x, &l);
}

void local_relay(struct exchange *x, enum cause cause, const struct head *said, struct str body)
{
	struct local l = { .status = said->status, .body = body, .said = said, .edits = true };

	x->cause = (uint8_t)cause;
	COUNT(x->w, cause[cause]);
	answer(x, &l);
}

void local_pass(struct exchange *x, const struct head *said, struct str body)
{
	answer(x, &(struct local){ .status = said->status, .body = body, .said = said, .edits = true, .theirs = true });
}

void local_empty(struct exchange *x, unsigned status)
{
	answer(x, &(struct local){ .status = status, .edits = true });
}

void local_route(struct exchange *x, const struct head *request)
{
	const struct route_spec *r = x->route->spec;
	struct local l = { .status = r->status, .edits = true };

	if (r->action == ROUTE_ANSWER) {
		l.type = r->content_type;
		l.body = r->text;
	} else {
		switch (route_redirect_location(x->route, forward_scheme(x, request), request->authority, request->target,
						&x->arena, &l.location)) {
		case OK:
			break;
		case ERR_MEM:
			local_cause(x, CAUSE_NO_MEMORY);
			return;
		default:
			local_cause(x, CAUSE_BAD_REQUEST);
			return;
		}
	}
	answer(x, &l);
}
