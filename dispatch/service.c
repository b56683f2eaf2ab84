/* Door: services, made once and then only read.  A service owns references to its
 * endpoints and a number of the endpoint table; it is owned by those who hold
 * references: snapshots, routes, exchanges.  It never changes after service_new. */
#include "dispatch/service.h"

#include <string.h>
#include "dispatch/endpoint_table.h"
#include "dispatch/text.h"
#include "lib/base/mem.h"

#define NAME_MAX_LEN 1024
#define HOST_MAX_LEN 512

static enum err spec_check(const struct service_spec *spec, struct snapshot_error *err)
{
	uint32_t i;

	if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN || !text_value(spec->name))
		return snapshot_error_set(err, ERR_SYNTAX, "a service needs a printable name of at most %d bytes",
					  NAME_MAX_LEN);
	if (spec->host > SERVICE_HOST_LITERAL)
		return snapshot_error_set(err, ERR_SYNTAX, "unknown host policy %u", spec->host);
	if (spec->host == SERVICE_HOST_LITERAL &&
	    (spec->host_literal.n == 0 || spec->host_literal.n > HOST_MAX_LEN || !text_host(spec->host_literal)))
		return snapshot_error_set(err, ERR_SYNTAX, "the host to send is not a host name");
	for (i = 0; i < spec->n_endpoints; i++) {
		if (!endpoint_address_valid(&spec->endpoints[i].address))
			return snapshot_error_set(err, ERR_SYNTAX, "endpoint %u has no usable address", i);
		if (spec->endpoints[i].weight == 0)
			return snapshot_error_set(err, ERR_SYNTAX, "endpoint %u has weight 0", i);
	}
	return OK;
}

static struct str spec_literal(const struct service_spec *spec)
{
	return spec->host == SERVICE_HOST_LITERAL ? spec->host_literal : STR("");
}

static void service_drop(struct service *s)
{
	uint32_t i;

	for (i = 0; i < s->n_endpoints; i++)
		endpoint_unref(s->endpoint[i].endpoint);
	mem_free(s);
}

struct service *service_new(struct endpoint_table *t, const struct service_spec *spec, struct snapshot_error *err)
{
	struct str literal = spec_literal(spec);
	struct service *s;
	size_t head;
	char *text;

	if (spec_check(spec, err) != OK)
		return NULL;
	head = sizeof(*s) + spec->n_endpoints * sizeof(s->endpoint[0]);
	s = mem_zalloc(head + spec->name.n + literal.n);
	if (!s)
		goto fail;
	text = (char *)s + head;
	memcpy(text, spec->name.p, spec->name.n);
	if (literal.n)
		memcpy(text + spec->name.n, literal.p, literal.n);
	s->text = text;
	s->name_len = (uint32_t)spec->name.n;
	s->host_len = (uint16_t)literal.n;
	s->host = spec->host;
	s->max_connections = spec->max_connections;
	s->proxy = spec->proxy;
	s->table = t;
	atomic_init(&s->refs, 1);
	for (; s->n_endpoints < spec->n_endpoints; s->n_endpoints++) {
		struct service_endpoint *e = &s->endpoint[s->n_endpoints];

		e->endpoint = endpoint_get(t, &spec->endpoints[s->n_endpoints].address);
		if (!e->endpoint)
			goto fail;
		e->weight = spec->endpoints[s->n_endpoints].weight;
	}
	if (endpoint_table_take_service(t, &s->index) == OK)
		return s;
fail:
	if (s)
		service_drop(s);
	snapshot_error_set(err, ERR_MEM, "no memory for a service");
	return NULL;
}

bool service_is(const struct service *s, const struct service_spec *spec)
{
	uint32_t i;

	if (!str_eq(service_name(s), spec->name) || s->host != spec->host ||
	    !str_eq(service_host_literal(s), spec_literal(spec)) || s->max_connections != spec->max_connections ||
	    s->proxy != spec->proxy || s->n_endpoints != spec->n_endpoints)
		return false;
	for (i = 0; i < s->n_endpoints; i++)
		if (s->endpoint[i].weight != spec->endpoints[i].weight ||
		    !endpoint_address_valid(&spec->endpoints[i].address) ||
		    !endpoint_is(s->endpoint[i].endpoint, &spec->endpoints[i].address))
			return false;
	return true;
}

struct service *service_ref(struct service *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void service_unref(struct service *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	endpoint_table_give_service(s->table, s->index);
	service_drop(s);
}
