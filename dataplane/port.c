/*
 * port.c - configures one ethdev port.
 *
 * Order of ethdev: configure (offloads, queues, RSS) -> adjust descriptors -> RX and TX queues -> MTU -> start -> MAC,
 * promiscuous -> flow rules. Everything optional is tried and remembered in struct port, so that port_describe tells what is really
 * in use.
 *
 * The MAC: a TAP's port has by default the very address of the kernel's end of it, so there we speak as another one:
 * the same with the lowest bit of the last byte flipped. A TAP delivers all frames, whatever their destination.
 */
#include <rte_errno.h>
#include <rte_flow.h>
#include <stdio.h>

#include "dataplane/arp.h"
#include "dataplane/mbufs.h"
#include "dataplane/place.h"
#include "dataplane/port.h"
#include "dataplane/tx.h"
#include "muster/check.h"

#define RSS_HASHES (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP)

unsigned int port_mbuf_bytes(unsigned int mtu)
{
	unsigned int frame = mtu + PORT_HEADER_LEN + 8; /* a VLAN tag or two may come along */
	return RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(frame < 2048 ? 2048 : frame, 64);
}

unsigned int port_mbufs(const struct dataplane_config *cfg)
{
	unsigned int others = RTE_MIN(cfg->workers - 1, 4u); /* enough for these to lag behind at the same time; beyond that frames are lost */
	return cfg->rx_descriptors + cfg->tx_descriptors + TX_QUEUE + INJECT_TX_ROOM + ARP_ASKING + MBUFS_CACHE * 3 / 2 + 512 +
	       others * EXCHANGE_KINDS * EXCHANGE_FRAMES;
}

static bool fail(char *err, size_t err_len, const struct dataplane_config *cfg, const char *what, int rc, const char *advice)
{
	snprintf(err, err_len, "device %s: %s: %s%s%s", cfg->device, what, rte_strerror(rc < 0 ? -rc : rc),
		 *advice != '\0' ? "; " : "", advice);
	return false;
}

/* ---- configure ---- */

static void choose_offloads(struct port *port, const struct dataplane_config *cfg, const struct rte_eth_dev_info *info,
			    struct rte_eth_conf *conf)
{
	bool software = cfg->inject_corrupt_ppm != 0; /* see inject.h */
	uint64_t rx = software ? 0 : info->rx_offload_capa, tx = software ? 0 : info->tx_offload_capa;
	conf->rxmode.offloads = rx & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
	conf->txmode.offloads = tx & (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	port->rx_ip_checksum = (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
	port->rx_tcp_checksum = (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_TCP_CKSUM) != 0;
	port->tx_ip_checksum = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
	port->tx_tcp_checksum = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0;
	conf->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & RSS_HASHES;
	port->rss = port->queues > 1 && conf->rx_adv_conf.rss_conf.rss_hf != 0;
	conf->rxmode.mq_mode = port->rss ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
}

static int set_up_queues(struct port *port, const struct dataplane_config *cfg, const struct rte_eth_dev_info *info,
			 const struct rte_eth_conf *conf, struct rte_mempool *const pools[])
{
	uint16_t rxd = (uint16_t)cfg->rx_descriptors, txd = (uint16_t)cfg->tx_descriptors;
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rxd, &txd);
	for (uint16_t q = 0; rc == 0 && q < port->queues; q++) {
		struct rte_eth_rxconf rx = info->default_rxconf;
		struct rte_eth_txconf tx = info->default_txconf;
		rx.offloads = conf->rxmode.offloads & info->rx_queue_offload_capa;
		tx.offloads = conf->txmode.offloads;
		rc = rte_eth_rx_queue_setup(port->id, q, rxd, SOCKET_ID_ANY, &rx, pools[place_poller(cfg, q, port->queues)]);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(port->id, q, txd, SOCKET_ID_ANY, &tx);
	}
	return rc;
}

/* The largest MTU by both limits that ethdev checks: the packet's and the frame's. */
static unsigned int mtu_limit(const struct rte_eth_dev_info *info)
{
	bool told = info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu;
	unsigned int overhead = told ? info->max_rx_pktlen - info->max_mtu : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	return RTE_MIN((unsigned int)info->max_mtu, info->max_rx_pktlen - overhead);
}

/* Configures and starts, with receive interrupts or without. */
static int bring_up(struct port *port, const struct dataplane_config *cfg, const struct rte_eth_dev_info *info,
		    struct rte_mempool *const pools[], bool interrupts)
{
	struct rte_eth_conf conf = {.intr_conf.rxq = interrupts};
	port->rx_interrupts = interrupts;
	conf.rxmode.mtu = port->mtu;
	choose_offloads(port, cfg, info, &conf);
	int rc = rte_eth_dev_configure(port->id, (uint16_t)port->queues, (uint16_t)port->queues, &conf);
	if (rc == 0)
		rc = set_up_queues(port, cfg, info, &conf, pools);
	if (rc == 0)
		rc = rte_eth_dev_start(port->id);
	return rc;
}

/* ---- address ---- */

static bool parse_mac(const char *text, uint8_t mac[6])
{
	struct rte_ether_addr addr;
	if (rte_ether_unformat_addr(text, &addr) != 0 || rte_is_multicast_ether_addr(&addr) || rte_is_zero_ether_addr(&addr))
		return false;
	memcpy(mac, addr.addr_bytes, 6);
	return true;
}

static bool choose_mac(struct port *port, const struct dataplane_config *cfg, char *err, size_t err_len)
{
	struct rte_ether_addr device;
	bool tap = strcmp(port->driver, "net_tap") == 0;
	int rc = rte_eth_macaddr_get(port->id, &device);
	if (rc != 0)
		return fail(err, err_len, cfg, "MAC address cannot be read", rc, "");
	memcpy(port->mac, device.addr_bytes, 6);
	if (cfg->mac[0] == '\0') {
		if (tap)
			port->mac[5] ^= 1;
		port->own_mac = tap;
		return true;
	}
	if (!parse_mac(cfg->mac, port->mac)) {
		snprintf(err, err_len, "mac \"%s\" is not the address of a single host; six bytes like 02:00:00:00:00:01 are wanted",
			 cfg->mac);
		return false;
	}
	port->own_mac = memcmp(port->mac, device.addr_bytes, 6) != 0;
	if (!port->own_mac || tap)
		return true;
	memcpy(device.addr_bytes, port->mac, 6);
	rc = rte_eth_dev_default_mac_addr_set(port->id, &device);
	port->own_mac = rc != 0;
	if (rc != 0) { /* then take everything, and ether.c drops what is not ours */
		rc = rte_eth_promiscuous_enable(port->id);
		port->promiscuous = rc == 0;
	}
	return rc == 0 || fail(err, err_len, cfg, "MAC address cannot be set", rc, "leave the setting empty to use the device's own");
}

/* ---- steering by the device ---- */

static struct rte_flow *rule_for(const struct port *port, const struct dataplane_config *cfg, unsigned int worker)
{
	struct dataplane_worker place = place_of(cfg, worker, port->queues);
	struct rte_flow_attr attr = {.ingress = 1};
	struct rte_flow_item_ipv4 ip = {.hdr.dst_addr = rte_cpu_to_be_32(cfg->addr)}, ip_mask = {.hdr.dst_addr = UINT32_MAX};
	struct rte_flow_item_tcp tcp = {.hdr.dst_port = rte_cpu_to_be_16(place.port)}, tcp_mask = {.hdr.dst_port = UINT16_MAX};
	struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip, .mask = &ip_mask},
		{.type = RTE_FLOW_ITEM_TYPE_TCP, .spec = &tcp, .mask = &tcp_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	struct rte_flow_action_queue queue = {.index = (uint16_t)place.queue};
	struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;
	if (rte_flow_validate(port->id, &attr, pattern, actions, &error) != 0)
		return NULL;
	return rte_flow_create(port->id, &attr, pattern, actions, &error);
}

static void drop_rules(struct port *port)
{
	struct rte_flow_error error;
	for (unsigned int w = 0; w < port->workers; w++)
		if (port->rules[w] != NULL)
			rte_flow_destroy(port->id, port->rules[w], &error);
	memset(port->rules, 0, sizeof(port->rules));
}

/*
 * One rule per worker, or none at all. A TAP is not asked: its rules need traffic control in the kernel, and the kernel learns by itself which queue a
 * flow's answers come from.
 */
static void try_rules(struct port *port, const struct dataplane_config *cfg)
{
	port->flow_rules = port->workers > 1 && port->queues == port->workers && strcmp(port->driver, "net_tap") != 0;
	for (unsigned int w = 0; w < port->workers && port->flow_rules; w++) {
		port->rules[w] = rule_for(port, cfg, w);
		port->flow_rules = port->rules[w] != NULL;
	}
	if (!port->flow_rules)
		drop_rules(port);
}

/* ---- start and stop ---- */

/* As many as the configuration names; where it leaves that open, what the device has, at most one per worker. */
static bool choose_queues(struct port *port, const struct dataplane_config *cfg, const struct rte_eth_dev_info *info, char *err, size_t err_len)
{
	unsigned int offered = RTE_MIN(info->max_rx_queues, info->max_tx_queues), named = place_queues(cfg);
	if (offered == 0)
		return fail(err, err_len, cfg, "has no queues", ENODEV, "");
	if (named > offered) {
		unsigned int worker = place_poller(cfg, offered, named);
		snprintf(err, err_len, "%s: worker %u: queue: %u, and device %s has %u; allowed: 0 to %u, or none", cfg->per_worker[worker].place, worker,
			 offered, cfg->device, offered, offered - 1);
		return false;
	}
	port->queues = named != 0 ? named : RTE_MIN(cfg->workers, offered);
	if (named == 0 && cfg->queues != 0)
		port->queues = RTE_MIN(port->queues, cfg->queues);
	return true;
}

bool port_start(struct port *port, const struct dataplane_config *cfg, struct rte_mempool *const pools[], char *err,
		size_t err_len)
{
	struct rte_eth_dev_info info;
	*port = (struct port){.id = (uint16_t)rte_eth_find_next(0), .mtu = cfg->mtu, .workers = cfg->workers};
	if (port->id >= RTE_MAX_ETHPORTS)
		return fail(err, err_len, cfg, "no such device was found", ENODEV, "check its name");
	int rc = rte_eth_dev_info_get(port->id, &info);
	if (rc != 0)
		return fail(err, err_len, cfg, "cannot be asked for its abilities", rc, "");
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	if (!choose_queues(port, cfg, &info, err, err_len))
		return false;
	if (port->mtu > mtu_limit(&info)) {
		snprintf(err, err_len, "device %s: its largest MTU is %u, and %u is wanted; lower mtu", cfg->device,
			 mtu_limit(&info), port->mtu);
		return false;
	}
	rc = place_any_sleeps(cfg) ? bring_up(port, cfg, &info, pools, true) : -ENOTSUP;
	if (rc != 0)
		rc = bring_up(port, cfg, &info, pools, false);
	if (rc != 0)
		return fail(err, err_len, cfg, "cannot be started", rc, "");
	port->started = true;
	rc = rte_eth_dev_set_mtu(port->id, (uint16_t)port->mtu);
	if (rc != 0 && rc != -ENOTSUP)
		return fail(err, err_len, cfg, "does not take the MTU", rc, "lower it");
	if (!choose_mac(port, cfg, err, err_len))
		return false;
	try_rules(port, cfg);
	return true;
}

void port_stop(struct port *port)
{
	if (!port->started)
		return;
	drop_rules(port);
	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
	port->started = false;
}

static const char *done_by(bool device)
{
	return device ? "device" : "software";
}

static const char *steering(const struct port *port)
{
	if (port->workers == 1)
		return "";
	if (port->flow_rules)
		return ", steered by flow rules";
	return port->rss ? ", steered by RSS and handover between workers" : ", steered by handover between workers";
}

void port_describe(const struct port *port, char *out, size_t out_len)
{
	snprintf(out, out_len,
		 "%s, MAC %02x:%02x:%02x:%02x:%02x:%02x%s, MTU %u, %u queue%s, RSS %s%s, "
		 "checksums: receive IPv4 by %s, TCP by %s, send IPv4 by %s, TCP by %s",
		 port->driver, port->mac[0], port->mac[1], port->mac[2], port->mac[3], port->mac[4], port->mac[5],
		 port->own_mac ? " (ours, not the device's)" : "", port->mtu, port->queues, port->queues == 1 ? "" : "s",
		 port->rss ? "on" : "off", steering(port), done_by(port->rx_ip_checksum), done_by(port->rx_tcp_checksum), done_by(port->tx_ip_checksum),
		 done_by(port->tx_tcp_checksum));
}
