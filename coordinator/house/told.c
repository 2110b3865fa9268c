/*
 * told.c - questions that arrive at a node, and their way back.
 */
#include "coordinator/house/question.h"

void question_answer(struct question *q, struct node *node)
{
	struct mailbox *desk = node_desk(node);
	struct mail mail = {q, 0, 0};
	CHECK(mailbox_send(desk, 0, &mail)); /* no more than QUESTIONS_MAX are under way */
}

void node_told(void *service, const struct mail *mail, struct now now)
{
	struct question *q = mail->subject;
	if (__atomic_load_n(&q->gone, __ATOMIC_RELAXED)) {
		question_answer(q, service);
		return;
	}
	q->ran = true;
	q->items = writer_of(q->bytes, sizeof(q->bytes));
	q->run(q, service, now);
}
