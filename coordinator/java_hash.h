/*
 * java_hash.h - Java's hash of a string that we hold as UTF-8, which decides about the shard of a group.
 */
#ifndef MUSTER_JAVA_HASH_H
#define MUSTER_JAVA_HASH_H

#include "muster/bytes.h"

/*
 * h = 31 h + unit over the UTF-16 code units, with 32-bit wrap-around; a character above U+FFFF is two units. A byte that is not part of
 * well-formed UTF-8 counts as U+FFFD, the character that Java decodes it to.
 */
int32_t java_hash(struct bytes utf8);

/* Its absolute value by Kafka's rule: that of INT32_MIN is 0. */
uint32_t java_hash_abs(struct bytes utf8);

#endif
