/*
 * reload.c - see reload.h.
 */
#include "coordinator/config_image.h"
#include "coordinator/reload.h"

struct node_call {
	struct node *node;
	const struct image *image;
	bool ok;
};

static void call_is_loaded(void *arg, struct now now)
{
	struct node_call *call = arg;
	call->ok = !node_is_loading(call->node);
}

static void call_set_image(void *arg, struct now now)
{
	struct node_call *call = arg;
	call->ok = node_set_image(call->node, call->image, now);
}

/* True: each node said yes. */
static bool ask_all(const struct reload *r, void (*fn)(void *arg, struct now now), const struct image *image)
{
	bool ok = true;
	for (unsigned int w = 0; w < (unsigned int)r->cfg->workers; w++) {
		struct node_call call = {r->nodes[w], image, false};
		ok = r->call(r->call_arg, w, fn, &call) && call.ok && ok;
	}
	return ok;
}

void reload_catalog(const struct reload *r)
{
	char err[CONFIG_ERROR_MAX];
	const struct image_topic *topics;
	struct image *image = config_image(r->cfg, r->host, err, sizeof(err));
	if (image == NULL) {
		output_line(r->out, "muster: the topics stay as they are: %s", err);
		return;
	}
	if (!ask_all(r, call_is_loaded, NULL)) {
		output_line(r->out, "muster: the topics stay as they are: the log is still loading, or the program stops; try again later");
		image_free(image);
		return;
	}
	if (!ask_all(r, call_set_image, image))
		output_line(r->out, "muster: offsets of topics that are gone may have stayed: no memory, or the program stops");
	image_free(*r->image);
	*r->image = image;
	output_line(r->out, "muster: topics: %u, read again from %s", image_topics(image, &topics) - 1, r->cfg->topics_file);
}
