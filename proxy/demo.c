/* demo: see demo.h.  libevent's own HTTP server does the work: this is an origin for a first look,
 * apart from the data path and its rules.  Owns its thread and event_base until the process ends. */
#include "proxy/demo.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>

#define DEMO_BODY_MAX (16 * 1024 * 1024)

static const char *method_name(enum evhttp_cmd_type type)
{
	switch (type) {
	case EVHTTP_REQ_GET: return "GET";
	case EVHTTP_REQ_POST: return "POST";
	case EVHTTP_REQ_HEAD: return "HEAD";
	case EVHTTP_REQ_PUT: return "PUT";
	case EVHTTP_REQ_DELETE: return "DELETE";
	case EVHTTP_REQ_OPTIONS: return "OPTIONS";
	case EVHTTP_REQ_TRACE: return "TRACE";
	case EVHTTP_REQ_PATCH: return "PATCH";
	default: return "?";
	}
}

static void echo(struct evhttp_request *r, void *arg)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(r);
	struct evbuffer *body = evhttp_request_get_input_buffer(r), *out = evbuffer_new();
	struct evkeyval *field;

	(void)arg;
	if (!out) {
		evhttp_send_error(r, 503, NULL);
		return;
	}
	evbuffer_add_printf(out, "This is thimble's demo origin. The request, as it arrived here:\n\n%s %s\n",
			    method_name(evhttp_request_get_command(r)), evhttp_request_get_uri(r));
	for (field = in->tqh_first; field; field = field->next.tqe_next)
		evbuffer_add_printf(out, "%s: %s\n", field->key, field->value);
	if (evbuffer_get_length(body)) {
		evbuffer_add_printf(out, "\n");
		evbuffer_add_buffer(out, body);
	}
	evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Type", "text/plain; charset=utf-8");
	evhttp_send_reply(r, 200, "OK", out);
	evbuffer_free(out);
}

static void *serve(void *base)
{
	event_base_dispatch(base);
	return NULL;
}

uint16_t demo_start(void)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = base ? evhttp_new(base) : NULL;
	struct evhttp_bound_socket *socket;
	struct sockaddr_in a = {0};
	socklen_t n = sizeof a;
	sigset_t all, before;
	pthread_t thread;
	int failed;

	if (!http)
		return 0;
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
				   EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH);
	evhttp_set_max_body_size(http, DEMO_BODY_MAX);
	evhttp_set_gencb(http, echo, NULL);
	socket = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	if (!socket || getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&a, &n))
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	failed = pthread_create(&thread, NULL, serve, base);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return 0;
	pthread_detach(thread);
	return ntohs(a.sin_port);
}
