/* The gate of CORS: answers preflights, and has every other answer say who may read it. */
#ifndef THIMBLE_PROXY_GATE_CORS_H
#define THIMBLE_PROXY_GATE_CORS_H

#include "proxy/gate.h"

gate_fn gate_cors;

#endif
