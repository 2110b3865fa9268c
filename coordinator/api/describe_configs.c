/*
 * describe_configs.c - DescribeConfigs: the settings that are in force, under Kafka's names. All are read-only.
 *
 *   resource          name                  answer
 *   broker (4)        this node's id        the settings of the program that Kafka has as well
 *                     ""                    none: there are no cluster-wide ones
 *                     another               error 42
 *   topic (2)         in the image          none: we keep no topics; unknown: error 3
 *   group (32)        any but ""            the settings that a group can have for itself (group_rules.h), known or not; "": error 42
 *   others                                  error 42
 *
 * Kafka 4.3 answers a group's resource with what it knows of its newer group types, each under the broker's name without "group."; of classic
 * groups it has no settings. Ours have the names that they have in the server's file.
 */
#include <stdio.h>

#include "coordinator/api/api.h"

enum { RESOURCE_TOPIC = 2, RESOURCE_BROKER = 4, RESOURCE_GROUP = 32 };

static bool wanted(const struct describe_configs_request_resource *in, struct bytes name)
{
	if (in->configuration_keys_len <= 0) /* null or none: all */
		return true;
	for (int32_t i = 0; i < in->configuration_keys_len; i++)
		if (bytes_equal(in->configuration_keys[i], name))
			return true;
	return false;
}

/* `own` is the group's own value; null: it has none. */
static bool fill_synonyms(const struct api_call *call, const struct setting *s, struct bytes own, struct describe_configs_response_config *out)
{
	struct describe_configs_response_synonym *list = API_ALLOC(call, 3, struct describe_configs_response_synonym);
	if (list == NULL)
		return false;
	out->synonyms = list;
	if (!bytes_is_null(own))
		list[out->synonyms_len++] = (struct describe_configs_response_synonym){s->name, own, SETTING_FROM_GROUP};
	if (s->source != SETTING_FROM_DEFAULT)
		list[out->synonyms_len++] = (struct describe_configs_response_synonym){s->name, s->value, (int8_t)s->source};
	list[out->synonyms_len++] = (struct describe_configs_response_synonym){s->name, s->default_value, SETTING_FROM_DEFAULT};
	return true;
}

static bool fill_setting(const struct api_call *call, const struct setting *s, struct bytes own, struct describe_configs_response_config *c)
{
	const struct describe_configs_request *all = call->in;
	enum setting_source source = bytes_is_null(own) ? s->source : SETTING_FROM_GROUP;
	describe_configs_response_config_init(c);
	c->name = s->name;
	c->value = bytes_is_null(own) ? s->value : own;
	c->read_only = true;
	c->is_default = source == SETTING_FROM_DEFAULT;
	c->config_source = (int8_t)source;
	c->config_type = (int8_t)s->type;
	c->documentation = all->include_documentation ? s->help : BYTES_NULL;
	return !all->include_synonyms || fill_synonyms(call, s, own, c);
}

static bool fill_node(const struct api_call *call, const struct describe_configs_request_resource *in, struct describe_configs_response_result *out)
{
	const struct setting *settings;
	unsigned int n = node_settings(call->node, &settings);
	struct describe_configs_response_config *list = API_ALLOC(call, n, struct describe_configs_response_config);
	if (list == NULL)
		return false;
	out->configs = list;
	for (unsigned int i = 0; i < n; i++)
		if (!settings[i].of_groups_only && wanted(in, settings[i].name) &&
		    !fill_setting(call, &settings[i], BYTES_NULL, &list[out->configs_len++]))
			return false;
	return true;
}

/* A group's own value as text; false: no memory. */
static bool own_value(const struct api_call *call, int32_t value, struct bytes *out)
{
	char *text = API_ALLOC(call, 12, char);
	if (text != NULL)
		*out = bytes_of(text, (size_t)snprintf(text, 12, "%d", value));
	return text != NULL;
}

static bool fill_group(const struct api_call *call, const struct describe_configs_request_resource *in, struct describe_configs_response_result *out)
{
	const struct setting *settings;
	uint32_t set;
	unsigned int n = node_settings(call->node, &settings);
	const struct group_settings *group = group_settings_find(node_groups(call->node), in->resource_name, &set);
	struct describe_configs_response_config *list = API_ALLOC(call, GROUP_OVERRIDE_COUNT, struct describe_configs_response_config);
	if (list == NULL)
		return false;
	out->configs = list;
	for (unsigned int o = 0; o < GROUP_OVERRIDE_COUNT; o++) {
		struct bytes name = bytes_str(group_override_name((enum group_override)o)), own = BYTES_NULL;
		if (!wanted(in, name))
			continue;
		if ((set >> o & 1) != 0 && !own_value(call, group_override_value(group, (enum group_override)o), &own))
			return false;
		for (unsigned int i = 0; i < n; i++)
			if (bytes_equal(settings[i].name, name) && !fill_setting(call, &settings[i], own, &list[out->configs_len++]))
				return false;
	}
	return true;
}

static int16_t check(const struct api_call *call, const struct describe_configs_request_resource *in)
{
	char id[16];
	snprintf(id, sizeof(id), "%d", node_id(call->node));
	switch (in->resource_type) {
	case RESOURCE_BROKER:
		return in->resource_name.len == 0 || bytes_equal(in->resource_name, bytes_str(id)) ? ERROR_NONE : ERROR_INVALID_REQUEST;
	case RESOURCE_TOPIC:
		if (!image_topic_name_ok(in->resource_name))
			return ERROR_INVALID_TOPIC_EXCEPTION;
		return image_topic(call->image, in->resource_name) != NULL ? ERROR_NONE : ERROR_UNKNOWN_TOPIC_OR_PARTITION;
	case RESOURCE_GROUP:
		return in->resource_name.len == 0 ? ERROR_INVALID_REQUEST : ERROR_NONE;
	default:
		return ERROR_INVALID_REQUEST;
	}
}

bool api_describe_configs(const struct api_call *call)
{
	const struct describe_configs_request *in = call->in;
	struct describe_configs_response out;
	describe_configs_response_init(&out);
	struct describe_configs_response_result *results = API_ALLOC(call, in->resources_len, struct describe_configs_response_result);
	if (results == NULL)
		return false;
	for (int32_t i = 0; i < in->resources_len; i++) {
		const struct describe_configs_request_resource *asked = &in->resources[i];
		describe_configs_response_result_init(&results[i]);
		results[i].resource_type = asked->resource_type;
		results[i].resource_name = asked->resource_name;
		results[i].error_code = check(call, asked);
		results[i].error_message = bytes_str(error_text(results[i].error_code));
		bool named = results[i].error_code == ERROR_NONE && asked->resource_name.len > 0;
		if (named && asked->resource_type == RESOURCE_BROKER && !fill_node(call, asked, &results[i]))
			return false;
		if (named && asked->resource_type == RESOURCE_GROUP && !fill_group(call, asked, &results[i]))
			return false;
	}
	out.results = results;
	out.results_len = in->resources_len;
	request_answer(call->rq, &out, call->now);
	return true;
}
