/* peer: see peer.h.
 *
 * Owns nothing but a v6 address's slab object, which hangs on the connection.  Called when a client was accepted, when its
 * PROXY protocol header was read, and when an endpoint is to hear of it.  Whether a header is to be believed is
 * not decided here (opening.c). */
#include "proxy/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "proxy/worker.h"

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };	/* RFC 4291 2.5.5.2 */

static enum err set_v4(struct worker *w, struct conn *c, const void *ip)
{
	if (c->t.flags & CONN_V6)
		slab_put(&w->peers_v6, c->peer.v6);
	c->t.flags &= (uint8_t)~CONN_V6;
	memcpy(&c->peer.v4, ip, 4);
	return OK;
}

static enum err set_v6(struct worker *w, struct conn *c, const void *ip)
{
	struct peer_v6 *v6 = c->t.flags & CONN_V6 ? c->peer.v6 : slab_get(&w->peers_v6);

	if (!v6)
		return ERR_MEM;
	memcpy(v6->ip, ip, 16);
	c->peer.v6 = v6;
	c->t.flags |= CONN_V6;
	return OK;
}

/* An IPv4-mapped address is the IPv4 address. */
static enum err set_ip(struct worker *w, struct conn *c, bool v6, const void *ip)
{
	if (!v6)
		return set_v4(w, c, ip);
	return memcmp(ip, mapped, sizeof mapped) ? set_v6(w, c, ip) : set_v4(w, c, (const char *)ip + 12);
}

enum err peer_note(struct worker *w, struct conn *c, const struct socket_address *peer)
{
	c->port = socket_address_port(peer);
	switch (peer->name.sa.sa_family) {
	case AF_INET:
		return set_ip(w, c, false, &((const struct sockaddr_in *)&peer->name.storage)->sin_addr);
	case AF_INET6:
		return set_ip(w, c, true, &((const struct sockaddr_in6 *)&peer->name.storage)->sin6_addr);
	default:
		return OK;
	}
}

enum err peer_told(struct worker *w, struct conn *c, const struct proxyproto *p)
{
	if (!p->family)
		return OK;
	if (set_ip(w, c, p->family == 6, p->src.ip) != OK)
		return ERR_MEM;
	c->port = p->src.port;
	return OK;
}

const char *peer_text(const struct conn *c, char text[PEER_TEXT])
{
	if (c->t.flags & CONN_V6)
		return inet_ntop(AF_INET6, c->peer.v6->ip, text, PEER_TEXT);
	if (c->peer.v4)
		return inet_ntop(AF_INET, &c->peer.v4, text, PEER_TEXT);
	return strcpy(text, "a unix socket");
}

/* The address that the client connected to; family 0 when it has none that a header could name. */
static uint8_t destination(const struct conn *c, struct proxyproto_end *end)
{
	struct socket_address a;

	if (socket_bound(c->t.fd, &a) != OK)
		return 0;
	end->port = socket_address_port(&a);
	switch (a.name.sa.sa_family) {
	case AF_INET:
		memcpy(end->ip, &((const struct sockaddr_in *)&a.name.storage)->sin_addr, 4);
		return 4;
	case AF_INET6:
		memcpy(end->ip, &((const struct sockaddr_in6 *)&a.name.storage)->sin6_addr, 16);
		return 6;
	default:
		return 0;
	}
}

/* Makes an IPv6 address of an IPv4 one. */
static void map(struct proxyproto_end *end)
{
	memmove(end->ip + 12, end->ip, 4);
	memcpy(end->ip, mapped, sizeof mapped);
}

size_t peer_header(const struct service *s, const struct conn *c, char *to)
{
	struct proxyproto p = { .version = s->rules->proxy == SERVICE_PROXY_V1 ? 1 : 2, .local = !c };
	uint8_t dst;

	if (s->rules->proxy == SERVICE_PROXY_OFF)
		return 0;
	if (!c)
		return proxyproto_write(&p, to);
	p.src.port = c->port;
	if (c->t.flags & CONN_V6) {
		p.family = 6;
		memcpy(p.src.ip, c->peer.v6->ip, 16);
	} else if (c->peer.v4) {
		p.family = 4;
		memcpy(p.src.ip, &c->peer.v4, 4);
	}
	dst = p.family ? destination(c, &p.dst) : 0;
	if (!dst && p.family) {		/* told by a proxy on a unix socket: only the source is known */
		dst = p.family;
		p.dst = (struct proxyproto_end){0};
	}
	if (p.family == 6 && dst == 4)
		map(&p.dst);
	if (p.family == 4 && dst == 6 && !memcmp(p.dst.ip, mapped, sizeof mapped)) {
		memmove(p.dst.ip, p.dst.ip + 12, 4);
	} else if (p.family == 4 && dst == 6) {
		map(&p.src);
		p.family = 6;
	}
	return proxyproto_write(&p, to);
}
