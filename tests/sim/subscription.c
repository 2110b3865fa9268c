/*
 * subscription.c - what consumers tell each other: subscriptions (version 1) and assignments (version 0) of the consumer protocol.
 */
#include "consumer.h"

static void write_string(struct writer *w, const char *s)
{
	writer_u16(w, (uint16_t)strlen(s));
	writer_raw(w, s, strlen(s));
}

void subscription_write_parts(struct writer *w, uint32_t parts)
{
	unsigned int topics = 0;
	for (unsigned int t = 0; t < TOPICS; t++)
		topics += (parts & topic_parts(t)) != 0;
	writer_u32(w, topics);
	for (unsigned int t = 0; t < TOPICS; t++) {
		uint32_t of = parts & topic_parts(t);
		if (of == 0)
			continue;
		write_string(w, topic_names[t]);
		writer_u32(w, (uint32_t)__builtin_popcount(of));
		for (; of != 0; of &= of - 1)
			writer_u32(w, (uint32_t)part_index((unsigned int)__builtin_ctz(of)));
	}
}

size_t subscription_write(const struct consumer *c, enum assignor a, uint8_t *out, size_t cap)
{
	struct writer w = writer_of(out, cap);
	writer_u16(&w, 1);
	writer_u32(&w, (uint32_t)__builtin_popcount(c->topics));
	for (unsigned int t = 0; t < TOPICS; t++)
		if (c->topics >> t & 1)
			write_string(&w, topic_names[t]);
	writer_u32(&w, UINT32_MAX); /* user data: null */
	subscription_write_parts(&w, a == STICKY || a == COOPERATIVE ? c->owned : 0);
	CHECK(!w.full);
	return writer_len(&w);
}

static int topic_of(struct bytes name)
{
	for (int t = 0; t < TOPICS; t++)
		if (bytes_equal(name, bytes_str(topic_names[t])))
			return t;
	return -1;
}

static struct bytes read_bytes(struct reader *r, int32_t len)
{
	const uint8_t *p = len < 0 ? NULL : reader_take(r, (size_t)len);
	return p == NULL ? BYTES_EMPTY : bytes_of(p, (size_t)len);
}

uint32_t subscription_read_parts(struct reader *r)
{
	uint32_t parts = 0, topics = reader_u32(r);
	for (uint32_t i = 0; i < topics && !r->bad; i++) {
		int t = topic_of(read_bytes(r, (int16_t)reader_u16(r)));
		uint32_t n = reader_u32(r);
		for (uint32_t k = 0; k < n && !r->bad; k++) {
			uint32_t index = reader_u32(r);
			if (t >= 0 && index < (uint32_t)topic_sizes[t])
				parts |= 1u << index << __builtin_ctz(topic_parts((unsigned int)t));
		}
	}
	return r->bad ? 0 : parts;
}

void subscription_read(struct assign_member *m, struct bytes b)
{
	struct reader r = reader_of(b.p, (size_t)(b.len > 0 ? b.len : 0));
	int16_t version = (int16_t)reader_u16(&r);
	uint32_t n = reader_u32(&r);
	for (uint32_t i = 0; i < n && !r.bad; i++) {
		int t = topic_of(read_bytes(&r, (int16_t)reader_u16(&r)));
		if (t >= 0)
			m->topics |= 1u << t;
	}
	read_bytes(&r, (int32_t)reader_u32(&r));
	if (version >= 1 && !r.bad)
		m->owned = subscription_read_parts(&r);
	if (r.bad)
		m->topics = m->owned = 0;
}
