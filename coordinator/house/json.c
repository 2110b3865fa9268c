/*
 * json.c - items as JSON. Names of groups and members are the clients' bytes: what is no UTF-8 is shown, not refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/house/command.h"

json_t *bytes_json(struct bytes b)
{
	if (bytes_is_null(b))
		return json_null();
	json_t *string = json_stringn((const char *)b.p, (size_t)b.len);
	char *text = string != NULL ? NULL : malloc((size_t)b.len * 4 + 1);
	if (text == NULL)
		return string;
	size_t n = 0;
	for (int32_t i = 0; i < b.len; i++) {
		if (b.p[i] < 0x80)
			text[n++] = (char)b.p[i];
		else
			n += (size_t)sprintf(text + n, "\\x%02x", b.p[i]);
	}
	string = json_stringn(text, n);
	free(text);
	return string;
}

json_t *item_json(const struct admin_item *item)
{
	json_t *object = json_object();
	json_object_set_new(object, "item", json_string(item->kind));
	for (unsigned int i = 0; i < item->len; i++) {
		const struct admin_field *f = &item->fields[i];
		json_object_set_new(object, f->name, f->type == ADMIN_TEXT ? bytes_json(f->text) : json_integer(f->number));
	}
	return object;
}
