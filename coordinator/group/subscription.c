/*
 * subscription.c - which topics a consumer group subscribes to, read from the metadata of the protocol that its members chose.
 *
 * As in Kafka the topics are those of the members that the latest join phase left in the group, with what they wanted then: members that join, leave or
 * are replaced since change nothing before the next one ends. A group that was loaded from the log has those of the members in its record.
 *
 * The metadata of a "consumer" protocol begin, in every version, with what version 0 consists of: version i16 | topics: i32 count, each a string
 * with i16 length | user data: i32 length, negative for none. What stands behind that is not looked at, and neither is the number of the version.
 * When one member's metadata cannot be read, nothing is known of the group. (Kafka's join phase never ends then, unless they are merely cut short.)
 */
#include "coordinator/group/group.h"

/* ---- lists of names ---- */

static int names_order(const void *a, const void *b)
{
	const struct bytes *x = a, *y = b;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->len <= 0 ? 0 : memcmp(x->p, y->p, (size_t)x->len);
}

void names_sort(struct bytes *names, size_t n)
{
	if (n > 1)
		qsort(names, n, sizeof(*names), names_order);
}

bool names_have(const struct bytes *names, size_t n, struct bytes name)
{
	return n > 0 && bsearch(&name, names, n, sizeof(*names), names_order) != NULL;
}

/* ---- reading ---- */

/* Names of several members; they point into the metadata. */
struct subscribed {
	struct bytes *names; /* malloc; in between with repetitions */
	size_t len, cap;
	struct bytes last; /* the topics as the latest member sent them: most members of a group want the same */
	bool known;	   /* so far */
};

static void subscribed_sort(struct subscribed *s)
{
	size_t kept = 0;
	names_sort(s->names, s->len);
	for (size_t i = 0; i < s->len; i++)
		if (kept == 0 || names_order(&s->names[kept - 1], &s->names[i]) != 0)
			s->names[kept++] = s->names[i];
	s->len = kept;
}

static bool subscribed_add(struct subscribed *s, struct bytes name)
{
	if (s->len == s->cap) {
		subscribed_sort(s);
		if (s->len >= s->cap / 2) {
			size_t cap = s->cap == 0 ? 16 : s->cap * 2;
			struct bytes *grown = realloc(s->names, cap * sizeof(*grown));
			if (grown == NULL)
				return false;
			s->names = grown;
			s->cap = cap;
		}
	}
	s->names[s->len++] = name;
	return true;
}

/* False: this is no subscription, or there is no memory. */
static bool subscribed_read(struct subscribed *s, struct bytes metadata)
{
	struct reader r = reader_of(metadata.p, metadata.len > 0 ? (size_t)metadata.len : 0);
	reader_u16(&r);
	const uint8_t *begin = r.p;
	int32_t count = (int32_t)reader_u32(&r);
	if (r.bad || count < 0)
		return false;
	size_t same = s->last.len > 0 ? (size_t)s->last.len : 0;
	if (same > 0 && (size_t)(r.end - begin) >= same && memcmp(begin, s->last.p, same) == 0) {
		reader_take(&r, same - sizeof(count));
		count = 0;
	}
	for (; count > 0; count--) {
		int16_t len = (int16_t)reader_u16(&r);
		const uint8_t *p = len < 0 ? NULL : reader_take(&r, (size_t)len);
		if (p == NULL || !subscribed_add(s, bytes_of(p, (size_t)len)))
			return false;
	}
	s->last = bytes_of(begin, (size_t)(r.p - begin));
	int32_t user_data = (int32_t)reader_u32(&r);
	return !r.bad && (user_data <= 0 || reader_take(&r, (size_t)user_data) != NULL);
}

/* ---- what the group keeps ---- */

void subscription_clear(struct subscription *s)
{
	free(s->names);
	*s = (struct subscription){NULL, 0, false};
}

/* Names and their text in one allocation. False: no memory. */
static bool subscription_keep(struct subscription *s, const struct bytes *names, size_t n)
{
	size_t size = n * sizeof(*names);
	if (n == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		size += (size_t)names[i].len;
	s->names = malloc(size);
	if (s->names == NULL)
		return false;
	uint8_t *text = (uint8_t *)(s->names + n);
	for (size_t i = 0; i < n; i++) {
		if (names[i].len > 0)
			memcpy(text, names[i].p, (size_t)names[i].len);
		s->names[i] = bytes_of(text, (size_t)names[i].len);
		text += names[i].len;
	}
	s->len = (uint32_t)n;
	return true;
}

static bool group_consumers(const struct group *group)
{
	return bytes_equal(group->protocol_type, BYTES_LITERAL("consumer"));
}

struct subscribed *subscribed_new(const struct group *group)
{
	struct subscribed *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->last = BYTES_NULL;
	s->known = group_consumers(group) && (group->members_len == 0 || !bytes_is_null(group->protocol));
	return s;
}

void subscribed_member(struct subscribed *s, const struct member *m)
{
	if (s != NULL && s->known)
		s->known = subscribed_read(s, member_metadata(m));
}

void subscribed_free(struct subscribed *s)
{
	if (s != NULL)
		free(s->names);
	free(s);
}

void group_subscribed(struct group *group, struct subscribed *s)
{
	subscription_clear(&group->subscription);
	if (s == NULL)
		return;
	subscribed_sort(s);
	group->subscription.known = s->known && subscription_keep(&group->subscription, s->names, s->len);
	subscribed_free(s);
}

void group_subscribe(struct group *group)
{
	struct subscribed *s = subscribed_new(group);
	for (uint32_t i = 0; i < group->members_len; i++)
		subscribed_member(s, group->members[i]);
	group_subscribed(group, s);
}

bool group_is_subscribed(const struct group *group, struct bytes topic)
{
	const struct subscription *s = &group->subscription;
	return s->known ? names_have(s->names, s->len, topic) : group_consumers(group);
}
