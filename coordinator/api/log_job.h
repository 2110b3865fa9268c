/*
 * log_job.h - requests that read the log: Fetch, and ListOffsets by a timestamp, of __consumer_offsets. They wait for the disk, for data, and for their turn.
 *
 *                  begin        all parts read                    answered
 *      QUEUED ------------> READING ------------------------------------------->
 *        ^                              |  too little, time left      ^
 *        |        new data              v                             | deadline
 *        +--------------------------- WAITING ------------------------+
 *
 * A job has parts, one per partition that it reads, read one after the other through log_read, in slices of the log's own choice between its other work.
 *
 * Bounds, so that readers cannot be felt by those who write: JOBS_READING jobs read at a time, each with a buffer of at most JOB_BYTES (or one
 * batch, when that is larger), and JOBS_MAX jobs are there at all. A round without a job that has something to do costs two compares.
 */
#ifndef MUSTER_API_LOG_JOB_H
#define MUSTER_API_LOG_JOB_H

#include <sys/queue.h>

#include "coordinator/log/log.h"
#include "coordinator/request.h"
#include "coordinator/wire/messages.h"

#define JOB_BYTES ((size_t)32 << 10)
#define JOBS_READING 4
#define JOBS_MAX 256

struct log_job;

struct log_jobs {
	struct log *log;
	TAILQ_HEAD(, log_job) list;
	unsigned int len, reading, queued;
	uint64_t durable;  /* position of the log in the last round */
	uint64_t deadline; /* not later than any waiting job's */
};

void log_jobs_init(struct log_jobs *all, struct log *log);
/* Forgets the requests; what the disk still reads is let go when it comes. */
void log_jobs_fini(struct log_jobs *all);
/* After log_poll. Returns the microsecond of its next wish. */
uint64_t log_jobs_tick(struct log_jobs *all, struct now now);
/* Nothing waits for data any more. Call it in each round until nothing is parked. */
void log_jobs_stop(struct log_jobs *all, struct now now);

/* A partition to read. */
struct log_job_part {
	int32_t topic, partition; /* places in the response */
	unsigned int shard;
	int64_t offset; /* fetch: from here on; lookup: how far it has come */
	union {
		size_t max;	   /* fetch: bytes */
		int64_t timestamp; /* lookup: the first record that is not older, or JOB_LARGEST_TIME */
	};
	int64_t seen;	   /* high watermark when it was read */
	size_t from, len;  /* fetch: in the buffer */
};

#define JOB_LARGEST_TIME (-3) /* the record with the largest timestamp: KIP-734 */

/*
 * Parks `rq` and answers it with a copy of `response` in which the parts are filled in, at `deadline` or as soon as there are `min` bytes. At most
 * `max` bytes, except for one batch (KIP-74). False: there is no memory or no room for one more job, and nothing was done.
 */
bool log_job_fetch(struct log_jobs *all, struct request *rq, const struct fetch_response *response, const struct log_job_part *parts, size_t n,
		   size_t min, size_t max, uint64_t deadline);
/* The same for ListOffsets, which does not wait for data. */
bool log_job_lookup(struct log_jobs *all, struct request *rq, const struct list_offsets_response *response, const struct log_job_part *parts, size_t n);

#endif
