/*
 * subscription.c - which topics the members of a consumer group subscribe to, read from the metadata of the protocol that the group chose.
 *
 * The metadata of a "consumer" protocol begin, in every version, with: version i16 | topics: i32 count, each a string with i16 length. What
 * stands behind that is not looked at.
 */
#include "coordinator/group/group.h"

static int subscription_order(const void *a, const void *b)
{
	const struct subscription_topic *x = a, *y = b;
	if (x->name.len != y->name.len)
		return x->name.len < y->name.len ? -1 : 1;
	return x->name.len <= 0 ? 0 : memcmp(x->name.p, y->name.p, (size_t)x->name.len);
}

void subscription_sort(struct subscription_topic *topics, size_t n)
{
	qsort(topics, n, sizeof(*topics), subscription_order);
}

/* All entries of one name stand side by side; `at` is any of them. */
static void subscription_mark_all(struct subscription_topic *topics, size_t n, struct subscription_topic *at)
{
	struct subscription_topic *first = at, *end = topics + n;
	while (first > topics && subscription_order(first - 1, at) == 0)
		first--;
	for (; first < end && subscription_order(first, at) == 0; first++)
		first->subscribed = true;
}

/* False: this is no subscription. */
static bool subscription_mark_member(struct bytes metadata, struct subscription_topic *topics, size_t n)
{
	struct reader r = reader_of(metadata.p, metadata.len > 0 ? (size_t)metadata.len : 0);
	int16_t version = (int16_t)reader_u16(&r);
	int32_t count = (int32_t)reader_u32(&r);
	if (r.bad || version < 0 || count < 0)
		return false;
	for (; count > 0 && !r.bad; count--) {
		int16_t len = (int16_t)reader_u16(&r);
		const uint8_t *p = len < 0 ? NULL : reader_take(&r, (size_t)len);
		if (p == NULL)
			return false;
		struct subscription_topic key = {.name = bytes_of(p, (size_t)len)};
		struct subscription_topic *found = n == 0 ? NULL : bsearch(&key, topics, n, sizeof(*topics), subscription_order);
		if (found != NULL && !found->subscribed)
			subscription_mark_all(topics, n, found);
	}
	return !r.bad;
}

void group_mark_subscribed(const struct group *group, struct subscription_topic *topics, size_t n)
{
	bool known = !bytes_is_null(group->protocol) || group->members_len == 0 || group->generation > 0;
	if (bytes_is_null(group->protocol) && known)
		return; /* nobody was a member when the group last chose */
	for (uint32_t i = 0; known && i < group->members_len; i++)
		known = subscription_mark_member(member_metadata(group->members[i]), topics, n);
	for (size_t i = 0; !known && i < n; i++)
		topics[i].subscribed = true;
}

bool subscription_has(const struct subscription_topic *topics, size_t n, struct bytes name)
{
	struct subscription_topic key = {.name = name};
	const struct subscription_topic *found = n == 0 ? NULL : bsearch(&key, topics, n, sizeof(*topics), subscription_order);
	return found != NULL && found->subscribed;
}
