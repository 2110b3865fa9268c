/*
 * errors.h - Kafka's error codes, expanded from errors.def.
 */
#ifndef MUSTER_WIRE_ERRORS_H
#define MUSTER_WIRE_ERRORS_H

enum kafka_error {
#define ERROR(name, code, text) ERROR_##name = code,
#include "coordinator/wire/errors.def"
#undef ERROR
};

/* The code's name and a sentence about it; "unknown error code" where we know none. */
const char *error_name(int code);
const char *error_text(int code);

#endif
