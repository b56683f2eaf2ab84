/* tls: see tls.h. */
#include "proxy/tls.h"

const struct tls_server *tls_of_listener(struct server *s, unsigned listener)
{
	(void)s, (void)listener;
	return NULL;
}

enum err tls_connect(struct server *s, const struct endpoint *e, struct tls_resume *resume, struct ssl_st **ssl)
{
	(void)s, (void)e, (void)resume, (void)ssl;
	return ERR_MEM;
}

bool tls_endpoint_parks(const struct server *s, const struct endpoint *e)
{
	(void)s, (void)e;
	return false;
}
