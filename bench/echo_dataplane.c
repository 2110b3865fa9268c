/*
 * echo_dataplane.c - the ceiling: reply_service on our own dataplane, until SIGTERM or SIGINT. SIGUSR1 prints the counters.
 *
 * usage: echo_dataplane [--device D] [--address A/LEN] [--port P] [--cpu N] [--idle spin|adaptive]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/reply_service.h"
#include "bench/setup.h"
#include "muster/time.h"

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
}

static void *wait_for_signals(void *dp)
{
	sigset_t set;
	int sig;
	signal_set(&set);
	while (sigwait(&set, &sig) == 0 && sig == SIGUSR1)
		setup_print_stats(dp);
	dataplane_stop(dp);
	return NULL;
}

int main(int argc, char **argv)
{
	struct setup setup;
	char err[512];
	sigset_t set;
	pthread_t thread;
	setup_init(&setup);
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !setup_option(&setup, argv[i], argv[i + 1])) {
			fprintf(stderr, "echo_dataplane: %s: not understood\n", argv[i]);
			return 2;
		}
	}
	signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	struct dataplane *dp = dataplane_start(&setup.dataplane, err, sizeof(err));
	if (dp == NULL) {
		fprintf(stderr, "echo_dataplane: %s\n", err);
		return EXIT_FAILURE;
	}
	dataplane_set_service(dp, 0, &reply_service_ops, dp);
	if (pthread_create(&thread, NULL, wait_for_signals, dp) != 0)
		return EXIT_FAILURE;
	printf("ready\n");
	fflush(stdout);
	dataplane_run(dp, US_PER_S);
	pthread_join(thread, NULL);
	dataplane_free(dp);
	return EXIT_SUCCESS;
}
