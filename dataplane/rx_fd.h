/*
 * rx_fd.h - a descriptor that becomes readable when frames wait in a receive queue, where there is one.
 */
#ifndef DATAPLANE_RX_FD_H
#define DATAPLANE_RX_FD_H

#include "dataplane/port.h"

struct rx_fd {
	int fd;		/* the driver's: neither read nor closed by us; -1: none */
	bool level;	/* stays readable while frames wait, so that nothing is missed between the last look and the sleep */
	bool interrupt; /* must be switched on before each sleep (rte_eth_dev_rx_intr_enable) */
	/* Called with `signal` before each receive burst, or the driver would not look; NULL: it looks by itself. */
	void (*nudge)(int signal);
	int signal;
};

struct rx_fd rx_fd_find(const struct port *port, uint16_t queue, const char *device);

static inline void rx_fd_nudge(const struct rx_fd *rx)
{
	if (rx->nudge != NULL)
		rx->nudge(rx->signal);
}

#endif
