/*
 * wire.h - big-endian loads and stores at places whose bounds the caller has already taken from a reader or from tx_get.
 */
#ifndef MUSTER_TCP_WIRE_H
#define MUSTER_TCP_WIRE_H

#include <string.h>

#include "muster/base.h"

static inline uint16_t wire_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t wire_get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}

static inline void wire_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void wire_put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

#endif
