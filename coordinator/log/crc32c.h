/*
 * crc32c.h - CRC-32C (Castagnoli) as Kafka and iSCSI use it: initial value and final xor all ones.
 */
#ifndef MUSTER_LOG_CRC32C_H
#define MUSTER_LOG_CRC32C_H

#include <isa-l/crc.h>

#include "muster/base.h"

/* `len` up to INT_MAX. */
static inline uint32_t crc32c(const uint8_t *p, size_t len)
{
	/* isa-l only reads, but its prototype does not say so */
	return ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, UINT32_MAX);
}

#endif
