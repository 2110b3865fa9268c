/*
 * tool.h - muster log: the tools for the log of a stopped server.
 *
 *   muster log dump   [--json] [--shard N] [--group ID] [--from TIME] [--to TIME]   every record as text
 *   muster log verify [--shard N]                                                    every segment, block, batch and record is read
 *   muster log export --shard N|--all DIR                                            as partitions of a Kafka broker
 *   muster log import [--partial] DIR...                                             a new log from partitions of a Kafka broker
 *
 * Which log: --log FOLDER, or log.dir of --config FILE and --set NAME=VALUE.
 */
#ifndef MUSTER_TOOL_H
#define MUSTER_TOOL_H

#include "coordinator/config.h"
#include "muster/bytes.h"

enum tool_status {
	TOOL_GOOD = 0,
	TOOL_BAD = 1,	 /* damage was found, or what was asked for could not be finished */
	TOOL_CANNOT = 2, /* wrong arguments, or the log cannot be looked at; nothing was done */
};

struct tool_options {
	const struct config *cfg;
	int64_t shard;	      /* -1: all */
	struct bytes group;   /* null: all */
	int64_t from_ms, to_ms; /* since 1970, both included */
	bool json, all, partial;
	char **dirs; /* arguments that are no options */
	int dirs_len;
};

struct folder;

/* The whole command; argv[0] is the word "log". Returns the exit status. */
int tool_main(int argc, char **argv);

/* Each verb writes what it finds to stdout and what is wrong to stderr. */
int tool_dump(const struct tool_options *o, struct folder *folder);
int tool_verify(const struct tool_options *o, struct folder *folder);
int tool_export(const struct tool_options *o, struct folder *folder);
/* `folder` is where the new log goes. */
int tool_import(const struct tool_options *o, const char *folder);

#endif
