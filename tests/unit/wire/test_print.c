/*
 * test_print.c - messages as text.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/messages.h"

static char text[1024];

static const char *print_request(int16_t key, const void *m, int16_t version)
{
	struct writer w = writer_of(text, sizeof(text) - 1);
	message_request(key)->print(m, &w, version);
	cr_assert(!w.full);
	text[writer_len(&w)] = '\0';
	return text;
}

Test(print, shows_the_fields_of_the_version_and_tells_null_from_empty)
{
	struct heartbeat_request m;
	heartbeat_request_init(&m);
	m.group_id = BYTES_LITERAL("a \"b\"\\\n\xc3");
	m.generation_id = -3;
	cr_assert_str_eq(print_request(12, &m, 2), "heartbeat_request{group_id=\"a \\\"b\\\"\\\\\\x0a\\xc3\" generation_id=-3 member_id=\"\"}");
	cr_assert_str_eq(print_request(12, &m, 3), "heartbeat_request{group_id=\"a \\\"b\\\"\\\\\\x0a\\xc3\" generation_id=-3 member_id=\"\""
						   " group_instance_id=null}");
}

Test(print, shows_arrays_bytes_booleans_and_null_arrays)
{
	struct join_group_request_protocol protocol[2];
	struct join_group_request m;
	join_group_request_init(&m);
	for (unsigned int i = 0; i < 2; i++)
		join_group_request_protocol_init(&protocol[i]);
	protocol[0].name = BYTES_LITERAL("range");
	protocol[1].metadata = BYTES_LITERAL("\x00\xfe");
	m.protocols = protocol, m.protocols_len = 2;
	cr_assert_str_eq(print_request(11, &m, 0),
			 "join_group_request{group_id=\"\" session_timeout_ms=0 member_id=\"\" protocol_type=\"\""
			 " protocols=[join_group_request_protocol{name=\"range\" metadata=0x}"
			 " join_group_request_protocol{name=\"\" metadata=0x00fe}]}");
	struct metadata_request all;
	metadata_request_init(&all);
	all.topics_len = -1;
	cr_assert_str_eq(print_request(3, &all, 4), "metadata_request{topics=null allow_auto_topic_creation=true}");
}

/* As Kafka writes ids: base64 with the URL alphabet. */
Test(print, shows_uuids_as_kafka_does)
{
	struct metadata_request_topic topic;
	struct metadata_request m;
	metadata_request_init(&m);
	metadata_request_topic_init(&topic);
	topic.name = BYTES_NULL;
	for (unsigned int i = 0; i < 16; i++)
		topic.topic_id.b[i] = (uint8_t)(0xf0 + i);
	m.topics = &topic, m.topics_len = 1;
	cr_assert_str_eq(print_request(3, &m, 12), "metadata_request{topics=[metadata_request_topic{topic_id=8PHy8_T19vf4-fr7_P3-_w name=null}]"
						   " allow_auto_topic_creation=true include_topic_authorized_operations=false}");
}

Test(print, a_short_buffer_is_reported)
{
	struct heartbeat_request m;
	heartbeat_request_init(&m);
	struct writer w = writer_of(text, 10);
	message_request(12)->print(&m, &w, 0);
	cr_assert(w.full);
	cr_assert_eq(w.need, strlen("heartbeat_request{group_id=\"\" generation_id=0 member_id=\"\"}"));
}
