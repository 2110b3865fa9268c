/*
 * opt.c - TCP options, layout in opt.h.
 */
#include "dataplane/tcp/opt.h"
#include "dataplane/tcp/wire.h"

enum opt_kind {
	OPT_END = 0,
	OPT_NOP = 1,
	OPT_MSS = 2,
	OPT_SCALE = 3,
	OPT_SACK_PERMITTED = 4,
	OPT_SACK = 5,
	OPT_TIMESTAMP = 8,
};

static bool parse_sack(struct opt *opt, struct reader *r, unsigned int value_bytes)
{
	if (value_bytes == 0 || value_bytes % 8 != 0 || value_bytes > 8 * OPT_MAX_SACK)
		return false;
	opt->sacks = (uint8_t)(value_bytes / 8);
	for (unsigned int i = 0; i < opt->sacks; i++) {
		opt->sack[i].start = reader_u32(r);
		opt->sack[i].end = reader_u32(r);
	}
	return true;
}

/* `r` holds exactly the value of the option. */
static bool parse_value(struct opt *opt, uint8_t kind, struct reader *r)
{
	unsigned int value_bytes = (unsigned int)reader_left(r);
	switch (kind) {
	case OPT_MSS:
		opt->mss = reader_u16(r);
		opt->has_mss = value_bytes == 2;
		return opt->has_mss;
	case OPT_SCALE:
		opt->scale = reader_u8(r);
		if (opt->scale > OPT_MAX_SCALE)
			opt->scale = OPT_MAX_SCALE;
		opt->has_scale = value_bytes == 1;
		return opt->has_scale;
	case OPT_SACK_PERMITTED:
		opt->sack_permitted = value_bytes == 0;
		return opt->sack_permitted;
	case OPT_SACK:
		return parse_sack(opt, r, value_bytes);
	case OPT_TIMESTAMP:
		opt->tsval = reader_u32(r);
		opt->tsecr = reader_u32(r);
		opt->has_timestamp = value_bytes == 8;
		return opt->has_timestamp;
	default:
		return true;
	}
}

bool opt_parse(struct opt *opt, const uint8_t *p, size_t len)
{
	struct reader r = reader_of(p, len);
	*opt = (struct opt){.sacks = 0};
	while (reader_left(&r) > 0) {
		uint8_t kind = reader_u8(&r);
		if (kind == OPT_END)
			return true;
		if (kind == OPT_NOP)
			continue;
		uint8_t option_len = reader_u8(&r);
		if (r.bad || option_len < 2)
			return false;
		const uint8_t *value = reader_take(&r, option_len - 2u);
		if (value == NULL)
			return false;
		struct reader v = reader_of(value, option_len - 2u);
		if (!parse_value(opt, kind, &v))
			return false;
	}
	return true;
}

size_t opt_write_syn(uint8_t p[OPT_MAX_BYTES], const struct opt *opt)
{
	size_t n = 0;
	wire_put32(p, OPT_MSS << 24 | 4 << 16 | opt->mss);
	n += 4;
	if (opt->sack_permitted) {
		wire_put32(p + n, OPT_NOP << 24 | OPT_NOP << 16 | OPT_SACK_PERMITTED << 8 | 2);
		n += 4;
	}
	if (opt->has_timestamp)
		n += opt_write_timestamp(p + n, opt->tsval, opt->tsecr);
	if (opt->has_scale) {
		wire_put32(p + n, OPT_NOP << 24 | OPT_SCALE << 16 | 3 << 8 | (uint32_t)opt->scale);
		n += 4;
	}
	return n;
}

size_t opt_write_timestamp(uint8_t *p, uint32_t tsval, uint32_t tsecr)
{
	wire_put32(p, OPT_TIMESTAMP_HEAD);
	wire_put32(p + 4, tsval);
	wire_put32(p + 8, tsecr);
	return OPT_TIMESTAMP_BYTES;
}

size_t opt_write_sack(uint8_t *p, const struct opt_sack *sack, unsigned int n)
{
	if (n == 0)
		return 0;
	wire_put32(p, OPT_NOP << 24 | OPT_NOP << 16 | OPT_SACK << 8 | (2 + 8 * n));
	for (unsigned int i = 0; i < n; i++) {
		wire_put32(p + 4 + 8 * i, sack[i].start);
		wire_put32(p + 8 + 8 * i, sack[i].end);
	}
	return opt_sack_bytes(n);
}
