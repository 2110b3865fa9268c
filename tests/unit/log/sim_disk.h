/*
 * sim_disk.h - a disk in memory that behaves as badly as real ones may: operations complete late and in any order, what was not flushed is lost,
 * torn or reordered in sectors when the power is cut, space runs out, writes fail.
 */
#ifndef MUSTER_TEST_SIM_DISK_H
#define MUSTER_TEST_SIM_DISK_H

#include "coordinator/log/disk.h"

struct sim_file;
struct sim_name;

struct sim_disk {
	struct disk disk;
	uint64_t random;
	struct sim_name *names;
	struct sim_file *files; /* all ever made, by number */
	int files_len;
	struct disk_op *pending;
	size_t capacity; /* bytes of all files together */
	size_t used;
	uint64_t ops;	      /* submitted so far */
	uint64_t cut_at;      /* the power is cut when this operation is under way; 0: never */
	uint64_t fail_write;  /* counts durable writes down; the one that makes it 0 fails */
	bool no_space;	      /* durable writes find none, as on file systems that reserve nothing */
	uint64_t fail_read;   /* the same for reads */
	uint64_t writes;      /* durable writes submitted */
	bool grows; /* a write behind the end of a file makes it longer, as it does with real ones; otherwise it is a fault of the log */
	bool lazy;	      /* nothing completes in poll */
	bool cut;	      /* everything fails since then */
};

struct sim_disk *sim_disk_new(uint64_t seed);
/*
 * What a cut leaves: a new disk. `kill`: only the program died, so what the kernel had was not lost. The old one fails from now on; free it
 * when its user is gone.
 */
struct sim_disk *sim_disk_after_cut(struct sim_disk *d, bool kill);
uint64_t sim_random(uint64_t *state);

/* The bytes of a file, to look at or to damage; NULL: there is none. */
uint8_t *sim_disk_bytes(struct sim_disk *d, const char *name, size_t *len);
/* The medium itself goes bad: what reads see and what a cut leaves. */
void sim_disk_flip(struct sim_disk *d, const char *name, size_t at, uint8_t bits);
/* The name of the i-th file in order of names, NULL behind the last. */
const char *sim_disk_name(struct sim_disk *d, int i);

#endif
