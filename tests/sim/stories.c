/* stories: exchanges told step by step, each with the one thing that it must not get wrong.
 *
 * Called by main.c, by name or all, and again with memory that fails.  A story plays the clients and the
 * origins; world.c checks what holds after any story. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "tests/sim/world.h"

#define GET "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n"
#define POST5 "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\n"
#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void one_request(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	EXPECT(world_requests(o) == 1);
	world_say(o, OK2);
	EXPECT(world_status(c, 0) == 200);
	EXPECT(peer_open(c) && peer_open(o));
	world_say(c, GET);
	EXPECT(net.connects_n == 1 && world_requests(o) == 2);	/* the same connection again */
	world_say(o, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_status(c, 1) == 404);
}

static void drip(struct peer *p, const char *text)
{
	for (; *text; text++) {
		peer_send(p, (struct str){ text, 1 });
		world_settle();
	}
}

static void byte_by_byte(void)
{
	struct peer *c = world_client(), *o;

	drip(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	o = world_up(0);
	EXPECT(world_requests(o) == 1);
	drip(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
	EXPECT(world_status(c, 0) == 200 && peer_open(c) && peer_open(o));
}

/* What it sends must go on when the sockets open by a few bytes at a time. */
static void sip(struct peer *p, size_t n)
{
	for (int i = 0; i < 4000 && peer_open(p); i++) {
		size_t before = p ? p->got.n : 0;

		peer_room(p, n);
		world_settle();
		if (!p || p->got.n == before)
			return;
	}
}

static void short_writes(void)
{
	char body[3000];
	struct peer *c = world_client(), *o;
	struct message m;

	memset(body, 'x', sizeof body);
	peer_room(c, 0);
	peer_send(c, STR("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3000\r\n\r\n"));
	net.connects = CONNECT_WAIT;
	world_settle();
	o = world_up(0);
	peer_room(o, 1);
	peer_up(o);
	world_settle();
	peer_send(c, (struct str){ body, sizeof body });
	sip(o, 7);
	EXPECT(world_requests(o) == 1);
	peer_send(o, STR("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n"));
	peer_send(o, (struct str){ body, sizeof body });
	world_settle();
	EXPECT(peer_got(c).n == 0);
	sip(c, 11);
	world_answer(c, 0, STR("POST"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.body.n == 3000 && memchr(m.body.p, 'y', m.body.n) == NULL);
	message_free(&m);
}

static void pipelined(void)
{
	struct peer *c = world_client(), *o;

	peer_send(c, STR("GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n"));
	world_say(c, "POST /3 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
	o = world_up(0);
	EXPECT(world_requests(o) == 1);
	world_say(o, OK2);
	EXPECT(world_requests(o) == 2);
	world_say(o, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_requests(o) == 3);
	world_say(o, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_status(c, 0) == 200 && world_status(c, 1) == 201 && world_status(c, 2) == 202);
	EXPECT(net.connects_n == 1);
}

/* RFC 9112 9.3.1: nobody knows whether a POST was carried out. */
static void kept_dies_under_post(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	world_say(o, OK2);
	world_say(c, POST5 "hello");
	EXPECT(world_requests(o) == 2);
	peer_fin(o);
	world_settle();
	EXPECT(world_status(c, 1) == 502 && net.connects_n == 1);
}

static void kept_dies_under_get(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	world_say(o, OK2);
	world_say(c, GET);
	peer_rst(o);
	world_settle();
	EXPECT(net.connects_n == 2 && world_requests(world_up(1)) == 1);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 1) == 200);
	/* once is enough */
	world_say(c, GET);
	peer_rst(world_up(1));
	world_settle();
	peer_fin(world_up(2));
	world_settle();
	EXPECT(world_status(c, 2) == 502 && net.connects_n == 3);
}

/* A POST may take a kept connection only after a look at it: its FIN can be there already. */
static void kept_fin_unseen(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	world_say(o, OK2);
	peer_fin(o);
	peer_send(c, STR(POST5 "hello"));
	world_settle();
	EXPECT(world_requests(o) == 1 && net.connects_n == 2 && world_requests(world_up(1)) == 1);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 1) == 200);
}

static void put_is_replayed(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	world_say(o, OK2);
	world_say(c, "PUT /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	peer_rst(o);
	world_settle();
	EXPECT(net.connects_n == 2);
	world_say(c, "2\r\nde\r\n0\r\n\r\n");
	EXPECT(world_requests(world_up(1)) == 1 && world_got(world_up(1), "abc"));
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 1) == 200);
}

static void connect_refused(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_REFUSED;
	world_say(c, GET);
	EXPECT(world_status(c, 0) == 502 && world_got(c, "connection_refused") && peer_open(c));
	net.connects = CONNECT_FAIL;
	world_say(c, GET);
	EXPECT(world_status(c, 1) == 502 && world_got(c, "destination_ip_unroutable"));
	net.connects = CONNECT_UP;
	world_say(c, GET);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 2) == 200);
}

static void second_endpoint(void)
{
	struct peer *c = world_client(), *a, *b;

	net.connects = CONNECT_WAIT;
	world_say(c, "POST /named HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello");
	a = world_up(0);
	peer_refuse(a, ECONNREFUSED);
	world_settle();
	b = world_up(1);
	EXPECT(b && a && a->port != b->port);
	peer_up(b);
	world_settle();
	EXPECT(world_requests(b) == 1 && peer_got(a).n == 0);
	EXPECT(world_got(b, b && b->port == 9004 ? "Host: 127.0.0.1:9004\r\n" : "Host: 127.0.0.1:9003\r\n"));
	world_say(b, OK2);
	EXPECT(world_status(c, 0) == 200);
}

static void connect_timeout(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_WAIT;
	world_say(c, GET);
	world_sleep(999);
	EXPECT(world_status(c, 0) == 0);
	world_sleep(2);
	EXPECT(world_status(c, 0) == 504 && world_got(c, "connection_timeout"));
	EXPECT(!peer_open(world_up(0)));
}

static void first_byte_timeout(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_sleep(5990);
	EXPECT(world_status(c, 0) == 0);
	world_sleep(20);
	EXPECT(world_status(c, 0) == 504 && world_got(c, "http_response_timeout"));
}

static void head_timeout(void)
{
	struct peer *c = world_client();

	world_say(c, "GET /a HT");
	for (int i = 0; i < 3; i++) {
		world_sleep(500);
		world_say(c, "T");
	}
	EXPECT(peer_open(c));
	world_sleep(510);	/* bytes that drip do not move the deadline */
	EXPECT(world_status(c, 0) == 408 && net.connects_n == 0);
	world_sleep(1100);
	EXPECT(!peer_open(c));
}

static void body_timeout(void)
{
	struct peer *c = world_client();

	world_say(c, POST5 "he");
	world_sleep(2900);
	world_say(c, "l");
	world_sleep(2900);
	EXPECT(world_status(c, 0) == 0);
	world_sleep(200);
	EXPECT(world_status(c, 0) == 408 && world_requests(world_up(0)) == 0 && !peer_open(world_up(0)));
}

static void idle_timeout(void)
{
	struct peer *c = world_client();

	world_sleep(4990);
	EXPECT(peer_open(c));
	world_sleep(20);
	EXPECT(!peer_open(c) && !c->reset && peer_got(c).n == 0);
}

static void write_timeout(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	peer_room(c, 3);
	world_say(world_up(0), OK2);
	world_sleep(3990);
	EXPECT(peer_open(c));
	world_sleep(20);
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_WRITE_TIMEOUT) == 1);
}

static void answer_stalls(void)
{
	struct peer *c = world_client();
	struct message m;

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	world_sleep(6990);
	EXPECT(peer_open(c));
	world_sleep(20);
	EXPECT(!peer_open(c) && world_count_cause(CAUSE_ANSWER_STALLED) == 1);
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_PART);
	message_free(&m);
}

static void answer_cut(void)
{
	static const char *const half[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
	};
	struct message m;

	for (unsigned i = 0; i < 3; i++) {
		struct peer *c = world_client();

		world_say(c, GET);
		world_say(world_up(i), half[i]);
		if (i == 1)
			peer_rst(world_up(i));
		else
			peer_fin(world_up(i));
		world_settle();
		EXPECT(!peer_open(c));
		world_answer(c, 0, STR("GET"), &m);
		EXPECT(m.state == MESSAGE_PART && m.status == 200 && m.body.n == 4);
		message_free(&m);
	}
}

/* An HTTP/1.0 client takes the end of the connection for the end of the answer: a cut must be a reset. */
static void answer_cut_for_10(void)
{
	struct peer *c = world_client();

	world_say(c, "GET /a HTTP/1.0\r\n\r\n");
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
	EXPECT(world_got(c, "half"));
	peer_fin(world_up(0));
	world_settle();
	EXPECT(!peer_open(c) && c->reset);
}

static void answer_until_close(void)
{
	struct peer *c = world_client();
	struct message m;

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 200 OK\r\n\r\nsome");
	world_say(world_up(0), "thing");
	peer_fin(world_up(0));
	world_settle();
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.chunked && m.body.n == 9 && peer_open(c));
	message_free(&m);
}

static void client_leaves(void)
{
	struct peer *c[4];

	for (int i = 0; i < 4; i++)
		c[i] = world_client();
	world_say(c[0], GET);
	peer_rst(c[0]);
	world_settle();
	EXPECT(!peer_open(world_up(0)) && !peer_open(c[0]));
	world_say(c[1], POST5 "he");
	peer_fin(c[1]);
	world_settle();
	EXPECT(world_requests(world_up(1)) == 0 && !peer_open(world_up(1)) && world_status(c[1], 0) == 400);
	world_say(c[2], GET);
	world_say(world_up(2), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	peer_rst(c[2]);
	world_settle();
	EXPECT(!peer_open(world_up(2)));
	/* half a request line and no more */
	world_say(c[3], "GET /a");
	peer_fin(c[3]);
	world_settle();
	EXPECT(!peer_open(c[3]) && world_status(c[3], 0) == 400);
}

/* A client that ends its side after its request still reads. */
static void half_closed_client(void)
{
	struct peer *c = world_client();

	peer_send(c, STR(GET));
	peer_fin(c);
	world_settle();
	EXPECT(world_requests(world_up(0)) == 1);
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200 && !peer_open(c) && !c->reset);
}

/* Empty lines are no request: the FIN that comes with them ends the connection at once. */
static void behind_empty_lines(void)
{
	struct peer *c[3] = { world_client(), world_client(), world_client() };

	peer_send(c[0], STR("\r\n"));
	peer_fin(c[0]);
	world_say(c[1], "\r");
	peer_send(c[1], STR("\n"));
	peer_fin(c[1]);
	world_say(c[2], GET);
	world_say(world_up(0), OK2);
	peer_send(c[2], STR("\r\n\r\n"));
	peer_fin(c[2]);
	world_settle();
	EXPECT(!peer_open(c[0]) && !peer_open(c[1]) && !peer_open(c[2]) && world_status(c[2], 0) == 200);
}

static void early_answer(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\nstart");
	o = world_up(0);
	world_say(o, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
	EXPECT(world_status(c, 0) == 413 && world_got(c, "Connection: close") && !peer_open(o));
	world_say(c, "more");
	world_sleep(900);
	world_say(c, "and more");
	world_sleep(300);
	EXPECT(!peer_open(c) && !c->reset);
}

/* The origin answers, closes, and resets what is still sent to it. */
static void early_answer_and_reset(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\nstart");
	o = world_up(0);
	peer_send(o, STR("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"));
	peer_rst(o);
	world_say(c, "more");
	EXPECT(world_status(c, 0) == 413);
}

/* A write is told of the reset first, and the read behind it then finds what looks like a clean end. */
static void reset_told_to_write(void)
{
	struct peer *c = world_client(), *o;
	struct message m;

	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\nstart");
	o = world_up(0);
	world_say(o, "HTTP/1.1 200 OK\r\n\r\nhalf");
	EXPECT(world_got(c, "half"));
	peer_rst(o);
	peer_hush(o);	/* the client's bytes come first */
	world_say(c, "more");
	peer_nudge(o);
	world_settle();
	world_answer(c, 0, STR("POST"), &m);
	EXPECT(m.state == MESSAGE_PART && !peer_open(c));
	message_free(&m);
}

static void interim_answers(void)
{
	struct peer *c = world_client();

	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	world_say(world_up(0), "HTTP/1.1 100 Continue\r\n\r\n");
	EXPECT(world_got(c, "HTTP/1.1 100 "));
	world_say(c, "hello");
	EXPECT(world_requests(world_up(0)) == 1);
	world_say(world_up(0), "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" OK2);
	EXPECT(world_got(c, "HTTP/1.1 103 ") && world_status(c, 0) == 200);
	for (int i = 0; i < 40; i++)
		world_say(c, i ? "" : GET);
	for (int i = 0; i < 40; i++)
		world_say(world_up(0), "HTTP/1.1 103 Early Hints\r\n\r\n");
	EXPECT(world_status(c, 1) == 502);
}

/* The first read ends inside a chunk's size line, more is there, and a kept connection is at hand. */
static void chunk_over_first_read(void)
{
	static char text[40000];
	struct peer *c = world_client();
	size_t n;

	world_say(c, GET);
	world_say(world_up(0), OK2);
	n = (size_t)snprintf(text, sizeof text, "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n");
	n += (size_t)snprintf(text + n, sizeof text - n, "%x\r\n", WORKER_READ_FIRST - 3 - (unsigned)n - 6);
	memset(text + n, 'c', WORKER_READ_FIRST - 3 - n);
	memcpy(text + WORKER_READ_FIRST - 3, "\r\n1", 3);
	n = WORKER_READ_FIRST;
	n += (size_t)snprintf(text + n, sizeof text - n, "0\r\nsixteen bytes an\r\n0\r\n\r\n");
	peer_send(c, (struct str){ text, n });
	world_settle();
	EXPECT(world_requests(world_up(0)) == 2 && world_got(world_up(0), "sixteen bytes an"));
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 1) == 200);
}

static void extra_bytes(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, GET);
	o = world_up(0);
	world_say(o, OK2 "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
	EXPECT(world_status(c, 0) == 200 && !peer_open(o));
	world_say(c, GET);
	o = world_up(1);
	world_say(o, OK2);
	world_say(o, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
	EXPECT(!peer_open(o));
	world_say(c, GET);
	EXPECT(!world_got(c, "poison") && net.connects_n == 3);
	world_say(world_up(2), OK2);
	EXPECT(world_status(c, 2) == 200);
}

/* An answer that came before its request was asked is nobody's. */
static void answer_before_request(void)
{
	struct peer *c = world_client();

	net.connects = CONNECT_WAIT;
	world_say(c, GET);
	peer_up(world_up(0));
	peer_send(world_up(0), STR("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"));
	world_settle();
	EXPECT(peer_got(c).n > 0);
	world_settle();
}

static void bad_answers(void)
{
	static const char *const bad[] = {
		"HTTP/2 200\r\n\r\n", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 20x OK\r\n\r\n",
	};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct peer *c = world_client();

		world_say(c, GET);
		world_say(world_up(i), bad[i]);
		EXPECT(world_status(c, 0) == 502 && !peer_open(world_up(i)) && peer_open(c));
	}
}

static void bad_requests(void)
{
	static const char *const bad[] = {
		"GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost : a\r\n\r\n", "BREW /a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
	};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct peer *c = world_client();

		peer_send(c, str_of(bad[i]));
		peer_send(c, STR(GET));
		world_settle();
		EXPECT(world_status(c, 0) >= 400 && net.connects_n == 0);
		world_sleep(1100);
		EXPECT(!peer_open(c) && !c->reset);
	}
}

static void chunk_error(void)
{
	struct peer *c = world_client();

	world_say(c, "POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n");
	EXPECT(world_status(c, 0) == 400 && world_requests(world_up(0)) == 0 && !peer_open(world_up(0)));
}

static void own_answers(void)
{
	struct peer *c = world_client();

	world_say(c, "GET /local HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_status(c, 0) == 200 && world_got(c, "here\n"));
	world_say(c, "GET /away?x HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_status(c, 1) == 302 && world_got(c, "Location: http://b.example/away?x\r\n"));
	world_say(c, "GET /none HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_status(c, 2) == 503 && world_got(c, "destination_unavailable"));
	EXPECT(net.connects_n == 0 && peer_open(c));
	world_say(c, "POST /small HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n");
	EXPECT(world_status(c, 3) == 413 && world_requests(world_up(0)) == 0);
}

static const char upgrade[] =
	"GET /a HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
#define SWITCHED "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

static void tunnel(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, upgrade);
	o = world_up(0);
	peer_send(c, STR("early"));
	world_say(o, SWITCHED "first");
	EXPECT(world_got(c, "\r\n\r\nfirst") && world_got(o, "\r\n\r\nearly"));
	peer_room(o, 2);
	world_say(c, "ping");
	peer_room(o, SIZE_MAX);
	world_settle();
	world_say(o, "pong");
	EXPECT(world_got(o, "earlyping") && world_got(c, "firstpong"));
	peer_fin(c);
	world_settle();
	EXPECT(o && o->shut && peer_open(o));
	world_say(o, "last");
	peer_fin(o);
	world_settle();
	EXPECT(world_got(c, "firstponglast") && !peer_open(c) && !peer_open(o));
}

/* An end waits for what was sent before it. */
static void tunnel_end_waits(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, upgrade);
	o = world_up(0);
	world_say(o, SWITCHED);
	peer_room(o, 1);
	world_say(c, "bye");
	peer_fin(c);
	world_settle();
	EXPECT(o && !o->shut && peer_open(o));
	peer_room(o, SIZE_MAX);
	world_settle();
	EXPECT(world_got(o, "\r\n\r\nbye") && o && o->shut && peer_open(o));
	peer_fin(o);
	world_settle();
	EXPECT(!peer_open(o) && !peer_open(c));
}

static void switch_before_the_request_was_read(void)
{
	struct peer *c = world_client(), *o;
	struct message m;

	net.connects = CONNECT_WAIT;
	world_say(c, upgrade);
	o = world_up(0);
	peer_room(o, 1);
	peer_up(o);
	world_settle();
	peer_send(o, STR(SWITCHED "first"));
	world_settle();
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.status == 502);
	message_free(&m);
	EXPECT(!peer_open(o));
}

static void tunnel_idles(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, upgrade);
	o = world_up(0);
	world_say(o, SWITCHED);
	world_sleep(8000);
	world_say(c, "x");
	world_sleep(8000);
	EXPECT(peer_open(c));
	world_sleep(1100);
	EXPECT(!peer_open(c) && !peer_open(o) && world_count_cause(CAUSE_TUNNEL_IDLE) == 1);
}

static void tunnel_reset(void)
{
	struct peer *c = world_client(), *o;

	world_say(c, upgrade);
	o = world_up(0);
	world_say(o, SWITCHED);
	peer_rst(o);
	world_settle();
	EXPECT(!peer_open(c) && c->reset);
	c = world_client();
	world_say(c, upgrade);
	world_say(world_up(1), SWITCHED);
	peer_rst(c);
	world_settle();
	EXPECT(!peer_open(world_up(1)));
}

static void kept_grow_old(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), OK2);
	peer_fin(c);
	world_sleep(7900);
	EXPECT(peer_open(world_up(0)));
	world_sleep(200);
	EXPECT(!peer_open(world_up(0)) && world.w->pools_slab.live == 0);
}

static void drain(void)
{
	struct peer *idle = world_client(), *busy = world_client(), *late;

	world_say(idle, GET);
	world_say(world_up(0), OK2);
	world_say(busy, GET);
	worker_tell(world.w, WORKER_DRAIN);
	world_settle();
	EXPECT(!peer_open(idle) && peer_open(busy));
	late = peer_connect(world.listener);
	world_settle();
	EXPECT(!late->accepted);
	world_say(world_up(0), OK2);
	EXPECT(world_status(busy, 0) == 200 && world_got(busy, "Connection: close") && !peer_open(busy));
	EXPECT(worker_open(world.w) == 0);
}

/* An empty line behind a request is no request that a drain would wait for. */
static void drain_ends_idle(void)
{
	struct peer *c = world_client();

	world_say(c, POST5 "hello\r\n");
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
	worker_tell(world.w, WORKER_DRAIN);
	world_say(world_up(0), "k");
	EXPECT(world_status(c, 0) == 200 && !peer_open(c) && worker_open(world.w) == 0);
}

static void no_descriptors(void)
{
	struct peer *c = world_client(), *late;

	net.no_accept = true;
	late = peer_connect(world.listener);
	world_settle();
	EXPECT(!late->accepted && world.w->accept_paused);
	world_say(c, GET);
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200);
	net.no_accept = false;
	world_sleep(60);
	EXPECT(late->accepted && !world.w->accept_paused);
	world_say(late, GET);
	net.no_watch = true;
	world_say(c, GET);	/* the loop takes no other connection */
	EXPECT(world_status(c, 1) == 503);
	net.no_watch = false;
	world_say(world_up(0), OK2);
	EXPECT(world_status(late, 0) == 200);
}

/* The next request is there already, and the answer to the one before did not say that it was the last. */
static void drain_with_next_request(void)
{
	struct peer *c = world_client();

	world_say(c, GET);
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
	world_say(c, GET);
	worker_tell(world.w, WORKER_DRAIN);
	world_say(world_up(0), "k");
	EXPECT(world_status(c, 0) == 200 && world_requests(world_up(1)) == 1 && !c->shut);
	world_say(c, GET);
	world_say(world_up(1), OK2);
	EXPECT(world_status(c, 1) == 200 && world_got(c, "Connection: close\r\n"));
	EXPECT(world_requests(world_up(1)) == 1 && c->shut && !c->reset);	/* closing on the third would reset the answer */
	peer_fin(c);
	world_settle();
	EXPECT(!peer_open(c) && !c->reset);
}

static void ipv6_client(void)
{
	struct peer *c = peer_connect(world.listener);

	c->v6 = true;
	world_settle();
	world_say(c, GET);
	EXPECT(world_got(world_up(0), "X-Forwarded-For: 2001:db8::1\r\n"));
	EXPECT(world_got(world_up(0), "for=\"[2001:db8::1]\""));
	world_say(world_up(0), OK2);
	EXPECT(world_status(c, 0) == 200);
}

/* The answer's tail waits for the client while its upstream connection serves the next one. */
static void tail_waits(void)
{
	struct peer *slow = world_client(), *c = world_client();

	world_say(slow, GET);
	peer_room(slow, 10);
	world_say(world_up(0), OK2);
	world_say(c, GET);
	EXPECT(net.connects_n == 1);
	world_say(world_up(0), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine");
	EXPECT(world_got(c, "mine"));
	peer_room(slow, SIZE_MAX);
	world_settle();
	EXPECT(world_got(slow, "\r\n\r\nok") && !world_got(slow, "mine") && peer_open(slow));
}

/* A large answer to a client that takes it, and to one that does not: read by little then. */
static void back_pressure(void)
{
	static char body[1 << 20];
	struct peer *c = world_client(), *o;
	struct message m;
	uint64_t used;

	world_say(c, GET);
	o = world_up(0);
	peer_room(c, 1000);
	memset(body, 'b', sizeof body);
	peer_send(o, STR("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"));
	peer_send(o, (struct str){ body, sizeof body });
	world_settle();
	used = world.w->budget.used;
	EXPECT(o && o->in_read < 64 * 1024 && used < 256 * 1024);
	for (int i = 0; i < 3000 && c && c->got.n < sizeof body; i++) {
		peer_room(c, 50000);
		world_settle();
		EXPECT(world.w->budget.used <= used + 128 * 1024);
	}
	world_answer(c, 0, STR("GET"), &m);
	EXPECT(m.state == MESSAGE_WHOLE && m.body.n == sizeof body);
	message_free(&m);
}

/* Most of a wave leaves; the few that stay, in every state that a connection can be in, are moved together and
 * notice nothing. */
static void few_stay(void)
{
	enum { N = 1600 };
	static struct peer *c[N];
	size_t chunks;

	for (int i = 0; i < N; i++)
		c[i] = world_client();
	world_say(c[100], "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");	/* waits for its answer */
	world_say(c[500], "GET /b HTTP/1.1\r\nHo");			/* half a head */
	world_say(c[900], "POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbo");
	chunks = world.w->conns.chunks;
	for (int i = 0; i < N; i++)
		if (i % 100)
			peer_fin(c[i]);
	world_settle();
	EXPECT(chunks > 4 && world.w->conns.live == N / 100);
	world_sleep(1500);
	EXPECT(world.w->conns.live == N / 100 && world.w->conns.chunks <= 3);
	world_say(c[500], "st: a.example\r\n\r\n");
	world_say(c[900], "dy");
	for (int i = 0; i < 3; i++)
		world_say(world_up((unsigned)i), OK2);
	EXPECT(world_status(c[100], 0) == 200 && world_status(c[500], 0) == 200 && world_status(c[900], 0) == 200);
	world_say(c[1500], "GET /local HTTP/1.1\r\nHost: a.example\r\n\r\n");
	EXPECT(world_status(c[1500], 0) == 200);
	world_sleep(6000);
	EXPECT(!peer_open(c[100]) && !peer_open(c[1500]));	/* time-outs came along */
}

const struct story stories[] = {
	{ "few-stay", NULL, few_stay },
	{ "one-request", NULL, one_request },
	{ "byte-by-byte", NULL, byte_by_byte },
	{ "short-writes", NULL, short_writes },
	{ "pipelined", NULL, pipelined },
	{ "kept-dies-under-post", NULL, kept_dies_under_post },
	{ "kept-dies-under-get", NULL, kept_dies_under_get },
	{ "kept-fin-unseen", NULL, kept_fin_unseen },
	{ "put-is-replayed", NULL, put_is_replayed },
	{ "connect-refused", NULL, connect_refused },
	{ "second-endpoint", NULL, second_endpoint },
	{ "connect-timeout", NULL, connect_timeout },
	{ "first-byte-timeout", NULL, first_byte_timeout },
	{ "head-timeout", NULL, head_timeout },
	{ "body-timeout", NULL, body_timeout },
	{ "idle-timeout", NULL, idle_timeout },
	{ "write-timeout", NULL, write_timeout },
	{ "answer-stalls", NULL, answer_stalls },
	{ "answer-cut", NULL, answer_cut },
	{ "answer-cut-for-1.0", NULL, answer_cut_for_10 },
	{ "answer-until-close", NULL, answer_until_close },
	{ "client-leaves", NULL, client_leaves },
	{ "half-closed-client", NULL, half_closed_client },
	{ "behind-empty-lines", NULL, behind_empty_lines },
	{ "early-answer", NULL, early_answer },
	{ "early-answer-and-reset", NULL, early_answer_and_reset },
	{ "reset-told-to-write", NULL, reset_told_to_write },
	{ "interim-answers", NULL, interim_answers },
	{ "chunk-over-first-read", NULL, chunk_over_first_read },
	{ "extra-bytes", NULL, extra_bytes },
	{ "answer-before-request", NULL, answer_before_request },
	{ "bad-answers", NULL, bad_answers },
	{ "bad-requests", NULL, bad_requests },
	{ "chunk-error", NULL, chunk_error },
	{ "own-answers", NULL, own_answers },
	{ "tunnel", NULL, tunnel },
	{ "switch-before-the-request-was-read", NULL, switch_before_the_request_was_read },
	{ "tunnel-end-waits", NULL, tunnel_end_waits },
	{ "tunnel-idles", NULL, tunnel_idles },
	{ "tunnel-reset", NULL, tunnel_reset },
	{ "kept-grow-old", NULL, kept_grow_old },
	{ "drain", NULL, drain },
	{ "drain-ends-idle", NULL, drain_ends_idle },
	{ "drain-with-next-request", NULL, drain_with_next_request },
	{ "no-descriptors", NULL, no_descriptors },
	{ "ipv6-client", NULL, ipv6_client },
	{ "tail-waits", NULL, tail_waits },
	{ "back-pressure", NULL, back_pressure },
	{ NULL, NULL, NULL },
};
