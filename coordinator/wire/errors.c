/*
 * errors.c - names and texts of Kafka's error codes, from errors.def.
 */
#include "coordinator/wire/errors.h"

const char *error_name(int code)
{
	switch (code) {
#define ERROR(name, number, text) \
	case number:              \
		return #name;
#include "coordinator/wire/errors.def"
#undef ERROR
	default:
		return "unknown error code";
	}
}

const char *error_text(int code)
{
	switch (code) {
#define ERROR(name, number, text) \
	case number:              \
		return text;
#include "coordinator/wire/errors.def"
#undef ERROR
	default:
		return "unknown error code";
	}
}
