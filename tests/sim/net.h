/* The network of a simulation: sockets that are buffers, a clock that stands still until it is
 * moved, an event loop that is a list.  The proxy's own code runs over it unchanged:
 * the linker's --wrap (sim.cmake) sends its calls of lib/net and of the system here.
 *
 * A peer is what we hold of one of the proxy's connections: its other end.  All functions take a
 * NULL peer and do nothing then, so that a story can go on when memory failed. */
#ifndef THIMBLE_SIM_NET_H
#define THIMBLE_SIM_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/str.h"
#include "lib/net/loop.h"

struct bytes {	/* grows; not of lib/base/mem.h, so that failing memory does not hit the simulation */
	char *p;	/* owned */
	size_t n, room;
};

void bytes_add(struct bytes *b, const void *p, size_t n);

enum peer_link { PEER_WAITS, PEER_UP, PEER_FAILED };

struct peer {
	int fd;			/* the proxy's end */
	bool client, v6;	/* it is a client; with an IPv6 address */
	uint16_t port;		/* of the endpoint that was connected to, or of the client */
	uint8_t link;		/* enum peer_link */
	int error;		/* pending on the proxy's socket */

	struct bytes in;	/* all that was sent to the proxy */
	size_t in_read;		/* what the proxy took of it */
	bool fin, rst;		/* sent to the proxy */
	struct bytes got;	/* all that the proxy wrote */
	size_t room;		/* bytes that its socket still takes; SIZE_MAX: any */

	bool shut;		/* the proxy ended its side */
	bool closed;		/* the proxy closed it */
	bool reset;		/* in a way that resets the connection: bytes may be lost */

	bool watched, event, blocked;
	enum loop_mode mode;
	void *ptr;		/* the proxy's; borrowed */
	int listener;		/* a client: where it connects to */
	bool accepted;
	void *story;		/* for whoever drives it */
};

enum connects {		/* what becomes of the proxy's connects from now on */
	CONNECT_UP,	/* they succeed in the next turn */
	CONNECT_WAIT,	/* nothing happens until peer_up or peer_refuse */
	CONNECT_REFUSED,	/* refused in the next turn */
	CONNECT_FAIL,	/* the call itself fails, ENETUNREACH */
};

struct record {	/* of the access log */
	uint16_t port, status;	/* of the client; of the answer, 0: none */
	bool head;		/* the method was HEAD */
};

struct net {
	bool on;
	uint64_t now_us, seed;
	enum connects connects;
	bool no_accept;		/* accept: EMFILE */
	bool no_watch;		/* loop_watch fails */
	bool shuffle;		/* events of one turn in any order */
	void (*meddle)(void);	/* NULL, or called before each read and write of the proxy */
	int64_t wait_ms;	/* what the last pass was asked to wait */
	unsigned long delivered, calls;
	struct record *records;	/* owned */
	unsigned n_records, max_records;
	bool log_on;		/* the access log */
	struct peer **peers;	/* owned, with the peers: in the order of their making */
	unsigned n_peers, max_peers;
	unsigned connects_n;	/* peers that are upstreams */
};

extern struct net net;

void net_begin(uint64_t seed);
/* CHECKs that the proxy has closed all. */
void net_end(void);
uint32_t net_random(uint32_t n);	/* below n */
int net_listener(void);			/* a descriptor to listen on */

struct peer *peer_connect(int listener);	/* a client comes */
struct peer *net_upstream(unsigned i);		/* the i-th connect of the proxy; NULL: there was none */

void peer_send(struct peer *p, struct str s);
void peer_fin(struct peer *p);
void peer_rst(struct peer *p);
void peer_room(struct peer *p, size_t room);	/* what its socket takes from now on */
void peer_up(struct peer *p);
void peer_refuse(struct peer *p, int error);
void peer_nudge(struct peer *p);		/* an event, with or without a reason */
void peer_hush(struct peer *p);			/* none for now: peer_nudge is due */
struct str peer_got(const struct peer *p);
bool peer_open(const struct peer *p);		/* the proxy has not closed it */

#endif
