/*
 * assignor.c - the assignors of consumers, on sets of partitions (one bit each, all topics counted through).
 *
 * Sticky keeps what members say they own, up to an even share; cooperative-sticky besides gives nothing to a member that another one still owns:
 * it has to be given up first, and the next rebalance hands it on.
 */
#include "sim.h"

const char *const topic_names[TOPICS] = {"orders", "clicks", "audit"};
const int32_t topic_sizes[TOPICS] = {8, 5, 3};

uint32_t topic_parts(unsigned int topic)
{
	unsigned int first = 0;
	for (unsigned int t = 0; t < topic; t++)
		first += (unsigned int)topic_sizes[t];
	return ((1u << topic_sizes[topic]) - 1) << first;
}

unsigned int part_topic(unsigned int part)
{
	unsigned int t = 0;
	while ((topic_parts(t) >> part & 1) == 0)
		t++;
	return t;
}

int32_t part_index(unsigned int part)
{
	return (int32_t)part - __builtin_ctz(topic_parts(part_topic(part)));
}

const char *assignor_name(enum assignor a)
{
	static const char *const names[ASSIGNORS] = {"range", "roundrobin", "sticky", "cooperative-sticky"};
	return names[a];
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct assign_member *)a)->id, ((const struct assign_member *)b)->id);
}

static void assign_range(struct assign_member *m, unsigned int n)
{
	for (unsigned int t = 0; t < TOPICS; t++) {
		unsigned int takers = 0, taken = 0, nth = 0;
		for (unsigned int i = 0; i < n; i++)
			takers += m[i].topics >> t & 1;
		for (unsigned int i = 0; i < n && takers > 0; i++) {
			if ((m[i].topics >> t & 1) == 0)
				continue;
			unsigned int share = (unsigned int)topic_sizes[t] / takers + (nth++ < (unsigned int)topic_sizes[t] % takers);
			m[i].got |= ((1u << share) - 1) << taken << __builtin_ctz(topic_parts(t));
			taken += share;
		}
	}
}

static void assign_roundrobin(struct assign_member *m, unsigned int n)
{
	unsigned int at = 0;
	for (unsigned int p = 0; p < PARTS; p++) {
		for (unsigned int tries = 0; tries < n; tries++) {
			struct assign_member *who = &m[at++ % n];
			if ((who->topics >> part_topic(p) & 1) == 0)
				continue;
			who->got |= 1u << p;
			break;
		}
	}
}

static void assign_sticky(struct assign_member *m, unsigned int n, bool cooperative)
{
	uint32_t taken = 0, wanted = 0, owned = 0;
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int t = 0; t < TOPICS; t++)
			if (m[i].topics >> t & 1)
				wanted |= topic_parts(t);
		owned |= m[i].owned;
	}
	unsigned int most = ((unsigned int)__builtin_popcount(wanted) + n - 1) / n;
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int p = 0; p < PARTS; p++) {
			bool may = (m[i].owned & ~taken & wanted) >> p & 1 && m[i].topics >> part_topic(p) & 1;
			if (!may || (unsigned int)__builtin_popcount(m[i].got) >= most)
				continue;
			m[i].got |= 1u << p;
			taken |= 1u << p;
		}
	}
	for (unsigned int p = 0; p < PARTS; p++) {
		struct assign_member *least = NULL;
		if ((wanted & ~taken) >> p & 1)
			for (unsigned int i = 0; i < n; i++)
				if (m[i].topics >> part_topic(p) & 1 &&
				    (least == NULL || __builtin_popcount(m[i].got) < __builtin_popcount(least->got)))
					least = &m[i];
		if (least != NULL && (!cooperative || (owned >> p & 1) == 0 || (least->owned >> p & 1) != 0))
			least->got |= 1u << p;
	}
}

void assign(enum assignor a, struct assign_member *members, unsigned int n)
{
	qsort(members, n, sizeof(*members), by_id);
	for (unsigned int i = 0; i < n; i++)
		members[i].got = 0;
	if (a == RANGE)
		assign_range(members, n);
	else if (a == ROUNDROBIN)
		assign_roundrobin(members, n);
	else
		assign_sticky(members, n, a == COOPERATIVE);
}
