/*
 * mailbox.h - messages between the services of the workers of one program: the second part of the seam.
 *
 * Each service may be given a mailbox. What it sends to another worker is handed to that worker's service by `mail` of struct service_ops, in the
 * order of sending, once, and on the receiver's core. Whatever was written before the sending is visible to the receiver.
 *
 * Rules:
 *  1. A mailbox is used by its own worker only.
 *  2. The dataplane moves the message, never what `subject` points to; whose that is, the services agree.
 *  3. Room is fixed: of `capacity` messages that lie unread between two workers, none is lost, and one more is not taken. Services keep below it by
 *     counting what they have outstanding, so that a message never has to wait for room.
 *
 * A mailbox also lets its service see whether the other workers live, without asking them: one that stands still cannot answer.
 */
#ifndef MUSTER_MAILBOX_H
#define MUSTER_MAILBOX_H

#include "muster/base.h"

struct mail {
	void *subject;
	uint32_t kind;
	uint32_t arg;
};

struct mailbox;

/* What can be seen of another worker. */
struct neighbour {
	bool still;	  /* it has not polled for longer than its limit (time.h) */
	uint64_t lost_us; /* how long it has stood still in all; grows when it goes on, before it passes on anything */
};

struct mailbox_ops {
	/* False: `capacity` messages lie unread at `to`. */
	bool (*send)(struct mailbox *mailbox, unsigned int to, const struct mail *mail);
	/* NULL: nobody ever stands still. */
	void (*look)(struct mailbox *mailbox, unsigned int other, struct neighbour *out);
};

struct mailbox {
	const struct mailbox_ops *ops;
	unsigned int self;     /* the worker that it belongs to */
	unsigned int workers;  /* numbered from 0 */
	unsigned int capacity; /* of each way from one worker to another */
};

static inline bool mailbox_send(struct mailbox *mailbox, unsigned int to, const struct mail *mail)
{
	return mailbox->ops->send(mailbox, to, mail);
}

static inline void mailbox_look(struct mailbox *mailbox, unsigned int other, struct neighbour *out)
{
	*out = (struct neighbour){.still = false};
	if (mailbox->ops->look != NULL)
		mailbox->ops->look(mailbox, other, out);
}

#endif
