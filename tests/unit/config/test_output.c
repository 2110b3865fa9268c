/*
 * test_output.c - a pipe that nobody reads: lines are dropped and counted, nothing waits, and the gap is told.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/output.h"

Test(output, a_line_arrives)
{
	int fd[2];
	char got[64] = "";
	struct output out;
	cr_assert(eq(int, pipe(fd), 0));
	output_init(&out, fd[1]);
	output_line(&out, "journal: %s %d", "g", 7);
	cr_expect(eq(int, (int)read(fd[0], got, sizeof(got) - 1), 13));
	cr_expect_str_eq(got, "journal: g 7\n");
}

Test(output, a_long_line_is_cut)
{
	int fd[2];
	struct output out;
	char long_line[2 * OUTPUT_LINE_MAX], got[2 * OUTPUT_LINE_MAX];
	cr_assert(eq(int, pipe(fd), 0));
	memset(long_line, 'x', sizeof(long_line) - 1);
	long_line[sizeof(long_line) - 1] = '\0';
	output_init(&out, fd[1]);
	output_line(&out, "%s", long_line);
	cr_expect(eq(int, (int)read(fd[0], got, sizeof(got)), OUTPUT_LINE_MAX));
	cr_expect(eq(chr, got[OUTPUT_LINE_MAX - 1], '\n'));
}

Test(output, a_full_pipe_drops_and_tells, .timeout = 20)
{
	int fd[2];
	struct output out;
	char got[1 << 17];
	cr_assert(eq(int, pipe(fd), 0));
	output_init(&out, fd[1]);
	unsigned int lines = 0;
	while (atomic_load(&out.dropped) == 0)
		output_line(&out, "line %u", lines++);
	for (unsigned int i = 0; i < 9; i++)
		output_line(&out, "lost");
	cr_expect(eq(uint, atomic_load(&out.dropped), 10));
	cr_assert(gt(int, (int)read(fd[0], got, sizeof(got) - 1), 0));
	output_line(&out, "after");
	ssize_t n = read(fd[0], got, sizeof(got) - 1);
	got[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(got, "muster: 10 lines are missing here: nobody took them in time\nafter\n");
	cr_expect(eq(uint, atomic_load(&out.dropped), 0));
}

Test(output, a_closed_pipe_only_counts)
{
	int fd[2];
	struct output out;
	signal(SIGPIPE, SIG_IGN);
	cr_assert(eq(int, pipe(fd), 0));
	close(fd[0]);
	output_init(&out, fd[1]);
	output_line(&out, "one");
	output_line(&out, "two");
	cr_expect(eq(uint, atomic_load(&out.dropped), 2));
}
