/*
 * config_check.c - the settings against each other: what no single value can get wrong.
 *
 * An error is told at the setting of the pair that was set last (--set after the file, the last --set, the lowest line), because
 * that is the one its author has just touched.
 */
#include "coordinator/config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* Later means set by a later hand. */
static bool later(const struct config_origin *a, const struct config_origin *b)
{
	return a->source != b->source ? a->source > b->source : a->line > b->line;
}

struct check {
	const struct config *cfg;
	char *err;
	size_t err_len;
};

/* Writes "PLACE: NAME: ..."; returns false. */
static PRINTF_LIKE(3, 4) bool fail(const struct check *ck, enum config_id id, const char *format, ...)
{
	char place[300];
	config_origin_text(ck->cfg, id, place, sizeof(place));
	int n = snprintf(ck->err, ck->err_len, "%s: %s: ", place, config_row(id)->name);
	if (n > 0 && (size_t)n < ck->err_len) {
		va_list ap;
		va_start(ap, format);
		vsnprintf(ck->err + n, ck->err_len - (size_t)n, format, ap);
		va_end(ap);
	}
	return false;
}

/* low <= high, both NUMBERs. */
static bool ordered(const struct check *ck, enum config_id low_id, int64_t low, enum config_id high_id, int64_t high)
{
	if (low <= high)
		return true;
	if (later(&ck->cfg->origin[low_id], &ck->cfg->origin[high_id]))
		return fail(ck, low_id, "%" PRId64 " is more than %s; allowed: at most %" PRId64, low, config_row(high_id)->name, high);
	return fail(ck, high_id, "%" PRId64 " is less than %s; allowed: at least %" PRId64, high, config_row(low_id)->name, low);
}

/* first + workers - 1 <= last */
static bool worker_range(const struct check *ck, enum config_id id, int64_t first, int64_t last)
{
	if (first + ck->cfg->workers - 1 <= last)
		return true;
	return fail(ck, id, "%" PRId64 " leaves no room for %" PRId64 " workers; allowed: at most %" PRId64, first, ck->cfg->workers,
		    last - ck->cfg->workers + 1);
}

static bool gateway_ok(const struct check *ck)
{
	const struct config *cfg = ck->cfg;
	uint32_t mask = ~(UINT32_MAX >> cfg->address.prefix_len);
	if (cfg->gateway == 0)
		return true;
	bool address_last = later(&cfg->origin[CONFIG_ID_address], &cfg->origin[CONFIG_ID_gateway]);
	enum config_id id = address_last ? CONFIG_ID_address : CONFIG_ID_gateway;
	if (cfg->gateway == cfg->address.addr)
		return fail(ck, id, "address and gateway are the same; allowed: two addresses of one network");
	if (((cfg->gateway ^ cfg->address.addr) & mask) != 0)
		return fail(ck, id, "the gateway is not in the network of the address; allowed: a gateway in that network");
	return true;
}

static bool faults_ok(const struct check *ck)
{
	const struct config *cfg = ck->cfg;
	int64_t sum = cfg->fault_inject_loss_ppm + cfg->fault_inject_duplicate_ppm + cfg->fault_inject_reorder_ppm +
		      cfg->fault_inject_corrupt_ppm;
	enum config_id last = CONFIG_ID_fault_inject_loss_ppm;
	for (enum config_id id = last; id <= CONFIG_ID_fault_inject_corrupt_ppm; id++)
		if (later(&cfg->origin[id], &cfg->origin[last]))
			last = id;
	if (sum > 1000000)
		return fail(ck, last, "all kinds of damage together are %" PRId64 "; allowed: at most 1000000", sum);
	return true;
}

bool config_validate(const struct config *cfg, char *err, size_t err_len)
{
	const struct check ck = {cfg, err, err_len};
	if (strpbrk(cfg->advertised_host, " /:") != NULL)
		return fail(&ck, CONFIG_ID_advertised_host,
			    "\"%.60s\" is not a host; allowed: a host name or IPv4 address; the port is another setting",
			    cfg->advertised_host);
	if (strpbrk(cfg->file_prefix, " /") != NULL)
		return fail(&ck, CONFIG_ID_file_prefix, "\"%s\" holds a blank or a /; allowed: letters, digits, - and _", cfg->file_prefix);
	return worker_range(&ck, CONFIG_ID_port, cfg->port, UINT16_MAX) && worker_range(&ck, CONFIG_ID_node_id, cfg->node_id, INT32_MAX) &&
	       gateway_ok(&ck) &&
	       ordered(&ck, CONFIG_ID_group_min_session_timeout_ms, cfg->group_min_session_timeout_ms,
		       CONFIG_ID_group_max_session_timeout_ms, cfg->group_max_session_timeout_ms) &&
	       ordered(&ck, CONFIG_ID_tcp_rto_min_ms, cfg->tcp_rto_min_ms, CONFIG_ID_tcp_rto_max_ms, cfg->tcp_rto_max_ms) &&
	       ordered(&ck, CONFIG_ID_socket_receive_buffer_bytes, cfg->socket_receive_buffer_bytes, CONFIG_ID_buffer_memory,
		       cfg->buffer_memory) &&
	       ordered(&ck, CONFIG_ID_socket_send_buffer_bytes, cfg->socket_send_buffer_bytes, CONFIG_ID_buffer_memory,
		       cfg->buffer_memory) &&
	       faults_ok(&ck);
}
