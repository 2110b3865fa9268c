/*
 * dataplane.h - what the program sees of the dataplane: start it, give each worker a service, run, stop.
 */
#ifndef MUSTER_DATAPLANE_H
#define MUSTER_DATAPLANE_H

#include "muster/pulse.h"
#include "muster/service.h"
#include "muster/stats.h"

enum idle_policy {
	IDLE_SPIN,     /* never sleeps */
	IDLE_ADAPTIVE, /* spins, then pauses, then sleeps up to 1 ms or until the port's descriptor is readable */
};

/* Where one worker runs and what it polls. */
struct dataplane_worker {
	const char *place; /* "FILE:LINE" that says it, in front of errors; may be empty */
	int cpu;	   /* -1: whichever the scheduler gives */
	int queue;	   /* of the port; -1: none, its frames come and go over other workers */
	int numa;	   /* node where its mbufs lie; -1: its CPU's, where it has one */
	uint16_t port;	   /* that it listens on */
	enum idle_policy idle;
};

/* Everything the dataplane must be told. Strings belong to the caller and outlive the dataplane. */
struct dataplane_config {
	const char *device;	   /* DPDK virtual device or PCI address, e.g. "net_tap0,iface=muster0" */
	const char *eal_extra;	   /* further EAL arguments, blank-separated; may be empty */
	const char *file_prefix;   /* EAL --file-prefix; empty: derived from the process id */
	const char *mac;	   /* "aa:bb:cc:dd:ee:ff" or empty: the device's own */
	uint32_t addr;		   /* our IPv4 address, host byte order */
	uint32_t gateway;	   /* 0: none, only the local network is reachable */
	unsigned int prefix_len;   /* of the local network */
	unsigned int mtu;	   /* IPv4 packet size, bytes */
	uint16_t port;		   /* TCP port that worker 0 listens on; worker n listens on port + n */
	unsigned int workers;	   /* at least 1 */
	unsigned int queues;	   /* of the device, at most one per worker; 0: as many as it offers */
	int cpu;		   /* of worker 0, worker n gets cpu + n; -1: whichever the scheduler gives */
	enum idle_policy idle;
	/*
	 * An array of `workers`, in the place of what port, queues, cpu and idle say: no CPU, queue or port stands twice, and the queues are 0 to n - 1, at
	 * least one. port is then worker 0's. NULL: by these.
	 */
	const struct dataplane_worker *per_worker;
	uint64_t stall_limit_us;   /* a worker that stands still for longer lets its time stand still too (time.h); 0: never */
	bool huge_pages;	   /* false: never use them, also where there are some */
	unsigned int rx_descriptors, tx_descriptors;

	unsigned int max_connections;	   /* per worker */
	size_t max_frame_bytes;		   /* socket.request.max.bytes */
	size_t receive_buffer_bytes;	   /* per connection: largest window offered */
	size_t send_buffer_bytes;	   /* per connection: queued beyond this, its requests are no longer read */
	size_t buffer_memory_bytes;	   /* per worker: send and receive buffers of all connections together */
	uint64_t idle_timeout_us;	   /* connections.max.idle.ms; 0: never */
	uint64_t rto_min_us, rto_max_us;   /* RFC 6298 with our floor */
	uint64_t delayed_ack_us;
	uint64_t keepalive_us;		   /* idle time before the first keepalive probe; 0: off */
	uint64_t time_wait_us;

	/* Fault injection for tests, at the device's RX and TX callbacks; all 0: none. Parts per million. */
	unsigned int inject_loss_ppm, inject_duplicate_ppm, inject_reorder_ppm, inject_corrupt_ppm;
	uint64_t inject_seed;

	/* Called on each worker's thread before its loop starts (allocator arena, ...); may be NULL. */
	void (*on_worker_start)(void *arg, unsigned int worker);
	void *on_worker_start_arg;
};

struct dataplane;

/* What the configured limits need, in bytes, before anything is started: for `muster config --check` and the shortfall message. */
size_t dataplane_memory_needed(const struct dataplane_config *cfg);

/*
 * Starts EAL and the port. Returns NULL and writes one line (what is wrong, where, what to do) to err on failure.
 * At most one dataplane per process, as EAL has it.
 */
struct dataplane *dataplane_start(const struct dataplane_config *cfg, char *err, size_t err_len);

/* The service that worker `w` calls; must be set before dataplane_run. */
void dataplane_set_service(struct dataplane *dp, unsigned int w, const struct service_ops *ops, void *service);

/*
 * Opens a connection from worker `w` (load generator, tests) to addr:port (host byte order). Call it from the service's own callbacks or before
 * dataplane_run. The service sees `opened` when it is established, or `connect_failed`. False: no connection or port is free.
 */
bool dataplane_connect(struct dataplane *dp, unsigned int w, uint32_t addr, uint16_t port, struct now now);

struct stats *dataplane_stats(struct dataplane *dp, unsigned int w);

/* The mailbox of the service of worker `w`; NULL when there is only one worker. */
struct mailbox *dataplane_mailbox(struct dataplane *dp, unsigned int w);

/*
 * The housekeeping thread: one that is none of the workers'. It tells a worker's service something by mail and reads what that sends back by the
 * desk's mailbox (whose only other end, number 0, it is); each way holds DESK_MAIL messages. Nobody waits. False: the ring is full.
 */
bool dataplane_tell(struct dataplane *dp, unsigned int w, const struct mail *mail);
unsigned int dataplane_told(struct dataplane *dp, unsigned int w, struct mail out[], unsigned int max);
/* An eventfd that is readable when a worker has sent something. It belongs to the dataplane. */
int dataplane_desk_fd(const struct dataplane *dp);
/* The worker's own end. */
struct mailbox *dataplane_desk(struct dataplane *dp, unsigned int w);

/* Signs of life of a worker, from any thread; the name of a stage of its loop; and how much lies in the rings of others to it. */
void dataplane_pulse(const struct dataplane *dp, unsigned int w, struct pulse *out);
const char *dataplane_stage(unsigned int stage);
unsigned int dataplane_depth(const struct dataplane *dp, unsigned int w);

/* An eventfd: writing to it ends a sleep of worker `w`, from any thread. It belongs to the dataplane. */
int dataplane_wake_fd(const struct dataplane *dp, unsigned int w);

/* One line about the port: driver, MAC, queues, how frames find their worker, which offloads are used and which are done in software. */
void dataplane_describe(const struct dataplane *dp, char *out, size_t out_len);

/*
 * Runs the workers on the calling thread (worker 0) and EAL's lcores until dataplane_stop, then stops accepting, lets the
 * services answer, closes the connections, and returns within `grace_us` after the stop. Returns 0.
 */
int dataplane_run(struct dataplane *dp, uint64_t grace_us);

/* Asks dataplane_run to end. Async-signal-safe. */
void dataplane_stop(struct dataplane *dp);

void dataplane_free(struct dataplane *dp);

#endif
