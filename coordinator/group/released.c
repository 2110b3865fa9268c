/*
 * released.c - static members that an administrator released: their clients are told so (82, FENCED_INSTANCE_ID), where an unknown member id
 * would make them join again at once. The last RELEASED_MAX of a group are remembered, until the group goes; not over a restart.
 */
#include "coordinator/group/group.h"

#define RELEASED_MAX 16

struct released {
	STAILQ_ENTRY(released) link;
	struct bytes member_id, instance_id; /* behind the struct */
};

static void released_drop(struct group *group)
{
	struct released *r = STAILQ_FIRST(&group->released);
	STAILQ_REMOVE_HEAD(&group->released, link);
	group->released_len--;
	free(r);
}

bool released_add(struct group *group, const struct member *m)
{
	CHECK(m->id.len >= 0 && m->instance_id.len >= 0);
	size_t id_len = (size_t)m->id.len, instance_len = (size_t)m->instance_id.len;
	struct released *r = malloc(sizeof(*r) + id_len + instance_len);
	if (r == NULL)
		return false;
	uint8_t *text = (uint8_t *)(r + 1);
	memcpy(text, m->id.p, id_len);
	memcpy(text + id_len, m->instance_id.p, instance_len);
	r->member_id = bytes_of(text, id_len);
	r->instance_id = bytes_of(text + id_len, instance_len);
	STAILQ_INSERT_TAIL(&group->released, r, link);
	if (++group->released_len > RELEASED_MAX)
		released_drop(group);
	return true;
}

bool released_has(const struct group *group, struct bytes member_id, struct bytes instance_id)
{
	const struct released *r;
	STAILQ_FOREACH(r, &group->released, link)
		if (bytes_equal(r->member_id, member_id) && bytes_equal(r->instance_id, instance_id))
			return true;
	return false;
}

void released_forget(struct group *group)
{
	while (!STAILQ_EMPTY(&group->released))
		released_drop(group);
}
