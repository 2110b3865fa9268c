/*
 * log_job_kind.h - private to the jobs: what they share, and what the two kinds of them implement.
 */
#ifndef MUSTER_API_LOG_JOB_KIND_H
#define MUSTER_API_LOG_JOB_KIND_H

#include "coordinator/api/log_job.h"

enum job_state { JOB_DONE, JOB_QUEUED, JOB_READING, JOB_WAITING };

struct log_job_kind {
	/* Fills in offset, buffer and room of job->read. False: this part is not to be read. */
	bool (*begin)(struct log_job *job, struct log_job_part *part);
	/* Takes what was read. False: the part is to be read again. */
	bool (*end)(struct log_job *job, struct log_job_part *part);
	/* Completes the response. */
	void (*answer)(struct log_job *job, struct request *rq, struct now now);
};

struct log_job {
	TAILQ_ENTRY(log_job) link;
	struct log_jobs *all; /* NULL: the node is gone */
	const struct log_job_kind *kind;
	struct request *rq; /* NULL: dropped while the disk reads */
	enum job_state state;
	bool busy;   /* `read` is on its way */
	bool failed; /* a part has an error: no waiting for data */
	uint64_t deadline;
	uint64_t again; /* when waiting: no new look before */
	struct log_read read;
	uint8_t *buf;
	size_t cap, used; /* used: bytes that were read for the answer */
	size_t min, max;
	void *response; /* one allocation, of the kind */
	struct log_job_part *parts;
	size_t parts_len, at; /* at: the part that is read */
};

/* NULL: no memory, or too many jobs. `parts` are copied. */
struct log_job *log_job_new(struct log_jobs *all, const struct log_job_kind *kind, const struct log_job_part *parts, size_t n);
/* Parks the request; the job goes on by itself. */
void log_job_begin(struct log_job *job, struct log_jobs *all, struct request *rq, uint64_t deadline);
/* Makes the buffer at least `size` bytes long; what is in it stays. */
bool log_job_room(struct log_job *job, size_t size);

#endif
