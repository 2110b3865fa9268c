/*
 * types.h - C types of the Kafka protocol's primitive types that the language has no word for.
 */
#ifndef MUSTER_WIRE_TYPES_H
#define MUSTER_WIRE_TYPES_H

#include "muster/bytes.h"

/* All zero: absent. */
struct uuid {
	uint8_t b[16];
};

#define UUID_ZERO ((struct uuid){{0}})

static inline bool uuid_is_zero(const struct uuid *u)
{
	static const struct uuid zero;
	return memcmp(u, &zero, sizeof(zero)) == 0;
}

static inline bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

#endif
