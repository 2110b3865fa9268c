/*
 * rx_fd.c - finds the descriptor behind a receive queue.
 *
 *   net_tap                     through ethdev's receive interrupts: the TAP itself
 *   net_af_packet, net_af_xdp   the driver hands out none, so we look among our own descriptors for its socket: there is one per
 *                               queue, and we have one queue
 *   others                      ethdev's receive interrupts where the driver has them; net_memif in polling mode has none
 *
 * net_tap reads its TAP only after a signal that the kernel sends for each frame (O_ASYNC, F_SETSIG); the handler does no more than tell the
 * next receive burst that it should look. Sending and taking that signal costs more than the look, so where we wait for the descriptor
 * anyway the signal is switched off and the handler is called before each burst.
 */
#define _GNU_SOURCE /* F_GETSIG */
#include <dirent.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "dataplane/rx_fd.h"

static bool is_socket_of(int fd, int family)
{
	int domain;
	socklen_t len = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == family;
}

/* A packet socket also tells its interface; an XDP socket does not. */
static bool is_bound_to(int fd, int family, unsigned int ifindex)
{
	struct sockaddr_ll addr;
	socklen_t len = sizeof(addr);
	if (family != AF_PACKET)
		return true;
	return getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && (unsigned int)addr.sll_ifindex == ifindex;
}

/* The only socket of this family on this interface; -1 when there is none, or more than one. */
static int find_socket(int family, unsigned int ifindex)
{
	int found = -1;
	unsigned int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return -1;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] == '.' || !is_socket_of(fd, family) || !is_bound_to(fd, family, ifindex))
			continue;
		found = fd;
		n++;
	}
	closedir(dir);
	return n == 1 ? found : -1;
}

static unsigned int interface_of(const char *device)
{
	char name[IF_NAMESIZE] = "";
	const char *p = strstr(device, "iface=");
	if (p != NULL)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p + 6, ","), p + 6);
	return if_nametoindex(name);
}

/* Leaves all as it is where the driver does not work as described above. */
static void signal_off(struct rx_fd *rx)
{
	struct sigaction action;
	int flags = fcntl(rx->fd, F_GETFL), sig = fcntl(rx->fd, F_GETSIG);
	if (flags < 0 || (flags & O_ASYNC) == 0 || sig <= 0 || sigaction(sig, NULL, &action) != 0)
		return;
	if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
		return;
	if (fcntl(rx->fd, F_SETFL, flags & ~O_ASYNC) != 0)
		return;
	rx->nudge = action.sa_handler;
	rx->signal = sig;
}

struct rx_fd rx_fd_find(const struct port *port, uint16_t queue, const char *device)
{
	struct rx_fd none = {.fd = -1};
	if (port->queues == 1 && strcmp(port->driver, "net_af_packet") == 0)
		return (struct rx_fd){.fd = find_socket(AF_PACKET, interface_of(device)), .level = true};
	if (port->queues == 1 && strcmp(port->driver, "net_af_xdp") == 0)
		return (struct rx_fd){.fd = find_socket(AF_XDP, 0), .level = true};
	if (!port->rx_interrupts)
		return none;
	int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->id, queue);
	if (fd < 0)
		return none;
	if (strcmp(port->driver, "net_tap") == 0) {
		struct rx_fd tap = {.fd = fd, .level = true};
		signal_off(&tap);
		return tap;
	}
	if (rte_eth_dev_rx_intr_enable(port->id, queue) != 0)
		return none;
	rte_eth_dev_rx_intr_disable(port->id, queue);
	return (struct rx_fd){.fd = fd, .interrupt = true};
}
