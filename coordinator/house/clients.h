/*
 * clients.h - the admin socket and its connections: lines in, lines out, bounded in number, bytes and time (command.h).
 */
#ifndef MUSTER_CLIENTS_H
#define MUSTER_CLIENTS_H

#include <poll.h>

#include "coordinator/config.h"
#include "muster/time.h"

#include "coordinator/house/command.h"

struct clients;

/*
 * Makes the socket's file, replacing one that nobody listens on. NULL: one line in err. `line` gets each request; while it says that the client is
 * busy (clients_busy) no further one is read.
 */
struct clients *clients_new(const struct config *cfg, void (*line)(void *arg, struct client *client, const char *line, size_t len),
			    void (*gone)(void *arg, struct client *client), void *arg, char *err, size_t err_len);
/* Closes all connections and removes the file. */
void clients_free(struct clients *all);

/* Descriptors to poll, at most CLIENTS_MAX + 1; returns how many. Then the same array with its results. */
unsigned int clients_poll(struct clients *all, struct pollfd fds[]);
void clients_serve(struct clients *all, const struct pollfd fds[], unsigned int n, struct now now);

/* Queues a line; adds the line feed. Without memory the client ends. */
void client_line(struct client *client, const char *line, size_t len);
/* Whether it may be given more: what was queued is nearly all taken. */
bool client_has_room(const struct client *client);
/* A request of it is being worked on. */
void client_busy(struct client *client, bool busy);
/* Nothing further is read; it is closed when it has taken everything. */
void client_end(struct client *client);

#endif
