/*
 * port.h - the device: what it offers is asked for and used, the rest is done in software.
 */
#ifndef DATAPLANE_PORT_H
#define DATAPLANE_PORT_H

#include <rte_ethdev.h>

#include "dataplane/exchange.h"
#include "muster/dataplane.h"

#define PORT_WORKERS_MAX EXCHANGE_WORKERS_MAX

/* Frame bytes in front of the IPv4 packet. */
#define PORT_HEADER_LEN 14u

struct port {
	uint16_t id;
	char driver[32];
	uint8_t mac[6];	   /* the one we speak as */
	unsigned int mtu;  /* IPv4 packet size, bytes */
	unsigned int queues;  /* at most one per worker */
	unsigned int workers;
	struct rte_flow *rules[PORT_WORKERS_MAX]; /* one per worker, or none */
	bool flow_rules;
	bool own_mac;	   /* `mac` is not the device's */
	bool rx_ip_checksum, rx_tcp_checksum, tx_ip_checksum, tx_tcp_checksum, rss; /* used, not only offered */
	bool promiscuous;
	bool rx_interrupts; /* configured with receive interrupts */
	bool started;
};

/*
 * Configures and starts the first port that EAL has probed, with a queue pair for each worker or, if it has fewer, for the first ones, each with its
 * worker's pool. False: one line in err.
 * Sizes are lowered to what the device can do.
 */
bool port_start(struct port *port, const struct dataplane_config *cfg, struct rte_mempool *const pools[], char *err,
		size_t err_len);
void port_stop(struct port *port);

void port_describe(const struct port *port, char *out, size_t out_len);

/* Data room of an mbuf that holds any frame of this MTU in one piece. */
unsigned int port_mbuf_bytes(unsigned int mtu);
/* mbufs that one worker needs: rings, queues, what waits for ARP, and the pool's cache. */
unsigned int port_mbufs(const struct dataplane_config *cfg);

#endif
