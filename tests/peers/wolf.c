/* A TLS client and server of wolfSSL's (README.md): wolf client|server PORT NAME CA CERT KEY VERSION SIZE ROUNDS REQUESTS, with - for
 * what there is not.  With TLS 1.3 it replaces its keys, and asks for others, in the middle of each body that it sends. */
#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 9000

static struct {
	const char *name, *ca, *cert, *key, *version;
	int port, size, rounds, requests;
} o;

static char in[1 << 22];

static void fail(const char *what, WOLFSSL *ssl, int rc)
{
	char text[80] = "";

	if (ssl)
		wolfSSL_ERR_error_string((unsigned long)wolfSSL_get_error(ssl, rc), text);
	printf("error: %s %s\n", what, text);
	exit(1);
}

static WOLFSSL_CTX *context(int server)
{
	int tls13 = strcmp(o.version, "1.3") == 0;
	WOLFSSL_METHOD *m = server ? (tls13 ? wolfTLSv1_3_server_method() : wolfTLSv1_2_server_method())
				   : (tls13 ? wolfTLSv1_3_client_method() : wolfTLSv1_2_client_method());
	WOLFSSL_CTX *ctx = wolfSSL_CTX_new(m);

	if (!ctx)
		fail("no context", NULL, 0);
	if (strcmp(o.ca, "-") != 0) {
		if (wolfSSL_CTX_load_verify_locations(ctx, o.ca, NULL) != WOLFSSL_SUCCESS)
			fail("authority", NULL, 0);
		wolfSSL_CTX_set_verify(ctx, WOLFSSL_VERIFY_PEER | WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	if (strcmp(o.cert, "-") != 0 && (wolfSSL_CTX_use_certificate_chain_file(ctx, o.cert) != WOLFSSL_SUCCESS ||
	    wolfSSL_CTX_use_PrivateKey_file(ctx, o.key, WOLFSSL_FILETYPE_PEM) != WOLFSSL_SUCCESS))
		fail("certificate", NULL, 0);
	if (!server)
		wolfSSL_CTX_UseSessionTicket(ctx);
	return ctx;
}

static void put(WOLFSSL *ssl, const char *p, int n)
{
	int rc = wolfSSL_write(ssl, p, n);

	if (rc != n)
		fail("write", ssl, rc);
}

/* A body in pieces, with new keys before the second of them and each fourth from there. */
static void put_body(WOLFSSL *ssl, const char *p, int n)
{
	for (int i = 0, at = 0; at < n; i++, at += PIECE) {
		if (i % 4 == 1 && strcmp(o.version, "1.3") == 0 && wolfSSL_update_keys(ssl) != WOLFSSL_SUCCESS)
			fail("new keys", ssl, 0);
		put(ssl, p + at, n - at < PIECE ? n - at : PIECE);
	}
}

/* A whole message into `in`; the bytes of its head and body, 0 at the end of the connection. */
static int get(WOLFSSL *ssl, int *head, int *body)
{
	int n = 0, rc;
	char *end = NULL, *length;

	*head = *body = 0;
	for (;;) {
		if (!end && n && (end = memmem(in, (size_t)n, "\r\n\r\n", 4))) {
			*head = (int)(end - in) + 4;
			*end = '\0';
			length = strcasestr(in, "\r\ncontent-length:");
			*body = length ? atoi(length + 17) : 0;
		}
		if (end && n >= *head + *body)
			return n;
		rc = wolfSSL_read(ssl, in + n, (int)sizeof in - n);
		if (rc <= 0) {
			if (n)
				fail("cut", ssl, rc);
			return 0;
		}
		n += rc;
	}
}

static void client(void)
{
	WOLFSSL_CTX *ctx = context(0);
	WOLFSSL_SESSION *session = NULL;
	char *body = malloc((size_t)o.size), request[200];

	for (int round = 0; round < o.rounds; round++) {
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)o.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		int fd = socket(AF_INET, SOCK_STREAM, 0), rc;
		WOLFSSL *ssl = wolfSSL_new(ctx);

		if (connect(fd, (struct sockaddr *)&a, sizeof a))
			fail("connect", NULL, 0);
		wolfSSL_UseSNI(ssl, WOLFSSL_SNI_HOST_NAME, o.name, (unsigned short)strlen(o.name));
		wolfSSL_check_domain_name(ssl, o.name);
		wolfSSL_set_fd(ssl, fd);
		if (session)
			wolfSSL_set_session(ssl, session);
		if ((rc = wolfSSL_connect(ssl)) != WOLFSSL_SUCCESS)
			fail("handshake", ssl, rc);
		for (int i = 0; i < o.requests; i++) {
			int head, n;

			for (int j = 0; j < o.size; j++)
				body[j] = (char)rand();
			n = snprintf(request, sizeof request, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", o.name, o.size);
			put(ssl, request, n);
			put_body(ssl, body, o.size);
			if (!get(ssl, &head, &n) || n != o.size || memcmp(in + head, body, (size_t)n) != 0 || strncmp(in, "HTTP/1.1 200 ", 13) != 0)
				fail("another answer", NULL, 0);
		}
		printf("version=%s resumed=%s\n", strcmp(wolfSSL_get_version(ssl), "TLSv1.3") == 0 ? "1.3" : "1.2",
		       wolfSSL_session_reused(ssl) ? "true" : "false");
		session = wolfSSL_get1_session(ssl);
		wolfSSL_shutdown(ssl);
		wolfSSL_free(ssl);
		close(fd);
	}
}

static void serve(WOLFSSL *ssl)
{
	char head_out[400], who[80] = "-";
	int head, n;

	while (get(ssl, &head, &n)) {
		WOLFSSL_X509 *x = wolfSSL_get_peer_certificate(ssl);
		int closes = strstr(in, "/close ") != NULL;

		if (x)
			wolfSSL_X509_NAME_get_text_by_NID(wolfSSL_X509_get_subject_name(x), NID_commonName, who, sizeof who);
		put(ssl, head_out, snprintf(head_out, sizeof head_out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Tls: version=%s resumed=%s who=%s\r\n%s\r\n",
			n, o.version, wolfSSL_session_reused(ssl) ? "true" : "false", who, closes ? "Connection: close\r\n" : ""));
		put_body(ssl, in + head, n);
		if (closes)
			break;
	}
	wolfSSL_shutdown(ssl);
}

static void server(void)
{
	WOLFSSL_CTX *ctx = context(1);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 16) || getsockname(l, (struct sockaddr *)&a, &size))
		fail("listen", NULL, 0);
	printf("port=%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (;;) {
		int fd = accept(l, NULL, NULL);
		WOLFSSL *ssl = wolfSSL_new(ctx);

		wolfSSL_set_fd(ssl, fd);
		if (wolfSSL_accept(ssl) == WOLFSSL_SUCCESS)
			serve(ssl);
		wolfSSL_free(ssl);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc != 11)
		fail("usage", NULL, 0);
	signal(SIGPIPE, SIG_IGN);
	o.port = atoi(argv[2]);
	o.name = argv[3];
	o.ca = argv[4];
	o.cert = argv[5];
	o.key = argv[6];
	o.version = argv[7];
	o.size = atoi(argv[8]);
	o.rounds = atoi(argv[9]);
	o.requests = atoi(argv[10]);
	wolfSSL_Init();
	if (strcmp(argv[1], "client") == 0)
		client();
	else
		server();
	return 0;
}
