/* The gate of basic auth. */
#ifndef THIMBLE_PROXY_GATE_BASIC_H
#define THIMBLE_PROXY_GATE_BASIC_H

#include "proxy/gate.h"

gate_fn gate_basic;

/* Once a worker was told WORKER_VERDICT: lets those go on whose passwords were looked at. */
void gate_basic_verdicts(struct worker *w);

#endif
