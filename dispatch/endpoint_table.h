/* Within dispatch: the numbers and rules of services come from the endpoint table too, since
 * it is the one object that lives as long as the process. */
#ifndef THIMBLE_DISPATCH_ENDPOINT_TABLE_H
#define THIMBLE_DISPATCH_ENDPOINT_TABLE_H

#include <stdint.h>
#include "dispatch/endpoint.h"
#include "lib/base/err.h"

/* Tables by number, a byte where a pointer would be eight. */
uint8_t endpoint_table_number(const struct endpoint_table *t);
struct endpoint_table *endpoint_table_at(uint8_t number);

MUST_USE enum err endpoint_table_take_service(struct endpoint_table *t, uint32_t *index);
void endpoint_table_give_service(struct endpoint_table *t, uint32_t index);
/* The rules of the services, borrowed. */
struct rules_table *endpoint_table_rules(struct endpoint_table *t);

#endif
