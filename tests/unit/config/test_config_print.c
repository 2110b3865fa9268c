/*
 * test_config_print.c - what is printed is read back to the same values, with the origin of each.
 */
#include "fixture.h"

static char *printed(const struct config *cfg)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (cfg != NULL)
		config_print(cfg, out);
	else
		config_print_example(out);
	fclose(out);
	return text;
}

/* Same values; origins and file may differ. */
static bool same_values(const struct config *a, const struct config *b)
{
	struct config x = *a, y = *b;
	memset(x.origin, 0, sizeof(x.origin));
	memset(y.origin, 0, sizeof(y.origin));
	x.sets = y.sets = 0;
	memset(x.file, 0, sizeof(x.file));
	memset(y.file, 0, sizeof(y.file));
	return memcmp(&x, &y, sizeof(x)) == 0;
}

static const char *const changes[] = {
	"node.id=1",
	"cluster.id=a name; with = and : and #",
	"advertised.host=muster.example.org",
	"port=1",
	"topics.file=/a/folder/topics.conf",
	"cpu=3",
	"idle.policy=spin",
	"device=0000:01:00.0",
	"mac=02:00:00:00:00:01",
	"huge.pages=false",
	"eal.extra=--log-level=*:debug -a 0000:01:00.0 -a 0000:02:00.0",
	"address=192.168.255.254/16",
	"gateway=192.168.0.1",
	"buffer.memory=1099511627776",
	"journal.output=none",
	"fault.inject.seed=2147483647",
};

Test(config_print, round_trip)
{
	struct fixture f;
	struct config cfg;
	config_init(&cfg);
	for (size_t i = 0; i <= ARRAY_LEN(changes); i++) {
		char *text = printed(&cfg);
		cr_expect(fixture_read(&f, text), "%s", f.err);
		cr_expect(same_values(&cfg, &f.cfg), "differs after %s:\n%s", i == 0 ? "defaults" : changes[i - 1], text);
		free(text);
		if (i < ARRAY_LEN(changes))
			fixture_set(&cfg, changes[i]);
	}
}

/* The longest value of each text setting, with a long origin, still fits the lines of the reader. */
Test(config_print, longest_values_round_trip)
{
	struct fixture f;
	struct config cfg;
	config_init(&cfg);
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		const struct config_row *row = config_row(i);
		if (row->type != CONFIG_TEXT && row->type != CONFIG_PATH)
			continue;
		char assignment[300];
		int n = snprintf(assignment, sizeof(assignment), "%s=/", row->name);
		memset(assignment + n, 'y', (size_t)row->max - 1);
		assignment[n + (int)row->max - 1] = '\0';
		fixture_set(&cfg, assignment);
		cfg.origin[i] = (struct config_origin){CONFIG_FROM_FILE, 123456};
	}
	memset(cfg.file, 'f', sizeof(cfg.file) - 1);
	char *text = printed(&cfg);
	cr_expect(fixture_read(&f, text), "%s", f.err);
	cr_expect(same_values(&cfg, &f.cfg));
	free(text);
}

Test(config_print, says_where_each_value_came_from)
{
	struct fixture f;
	char want[300];
	cr_assert(fixture_read(&f, "[node]\nport = 5\n"), "%s", f.err);
	fixture_set(&f.cfg, "mtu=9000");
	char *text = printed(&f.cfg);
	snprintf(want, sizeof(want), "\nport = 5                                     ; %s:2\n", f.path);
	cr_expect(ne(ptr, strstr(text, want), NULL), "%s", text);
	cr_expect(ne(ptr, strstr(text, "\nmtu = 9000                                   ; --set\n"), NULL), "%s", text);
	cr_expect(ne(ptr, strstr(text, "\nnode.id = 1000                               ; default\n"), NULL), "%s", text);
	free(text);
}

Test(config_print, list_names_every_setting_once)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	config_print_list(out);
	fclose(out);
	const char *line = text;
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		size_t n = strlen(config_row(i)->name);
		cr_expect(eq(int, strncmp(line + 2, config_row(i)->name, n), 0));
		cr_expect(eq(chr, line[2 + n], ' '));
		line = strchr(line, '\n') + 1;
	}
	cr_expect(eq(chr, *line, '\0'));
	free(text);
}

/* The example with its comment signs removed sets every setting to its default. */
Test(config_print, example_holds_every_setting)
{
	struct fixture f;
	struct config cfg;
	char *text = printed(NULL);
	cr_expect(fixture_read(&f, text), "%s", f.err);
	for (char *p = text; (p = strstr(p, "\n#")) != NULL; p += 2)
		if (p[2] != ' ')
			p[1] = ' ';
	cr_expect(fixture_read(&f, text), "%s", f.err);
	config_init(&cfg);
	cr_expect(same_values(&cfg, &f.cfg));
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++)
		cr_expect(eq(int, f.cfg.origin[i].source, CONFIG_FROM_FILE), "%s is missing", config_row(i)->name);
	free(text);
}
