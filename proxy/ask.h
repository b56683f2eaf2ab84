/* The gate that asks a service whether a request may pass. */
#ifndef THIMBLE_PROXY_ASK_H
#define THIMBLE_PROXY_ASK_H

#include "proxy/gate.h"

/* Bytes of a refusal's body that are passed on; a longer one is 502. */
#define ASK_BODY_MAX (64u * 1024)

gate_fn ask_auth;	/* its part is a struct auth */

#endif
