/*
 * ctl.h - the commands that look into a running server or have it do something, over its admin socket (house/command.h has the protocol).
 *
 *   muster status | groups | why [GROUP] [--member ID] [--instance ID] | waiting GROUP | release GROUP INSTANCE |
 *          reset-offsets GROUP TOPIC:PARTITION=OFFSET... | reload | cores --show        each with [--json] and which server
 */
#ifndef MUSTER_CTL_H
#define MUSTER_CTL_H

#include <jansson.h>
#include <stdio.h>

#include "muster/base.h"

#define CTL_ERROR_MAX 1000
#define CTL_SOCKET "/run/muster/admin.sock" /* where deploy/muster.conf has it */
#define CTL_SOCKET_VARIABLE "MUSTER_ADMIN_SOCKET"

enum ctl_status { CTL_GOOD = 0, CTL_FAILED = 1, CTL_CANNOT = 2 };

struct ctl {
	json_t *request;
	char socket[256];
	bool json, help;
};

/* Whether argv[1] of the program is one of these words. */
bool ctl_knows(const char *word);
/* argv[0] is the word. Returns the exit status. */
int ctl_main(int argc, char **argv);

/* options.c: the command line. False: one line in err. */
bool ctl_parse(struct ctl *ctl, int argc, char **argv, char *err, size_t err_len);
void ctl_help(FILE *out);

/* show.c: items for people. A list of the kinds that came, each a table. */
struct show;
struct show *show_new(void);
void show_item(struct show *show, json_t *item); /* keeps a reference */
void show_end(struct show *show, FILE *out);	 /* prints and frees */

#endif
