/* docs/configuration.md names every key of every table, and the shipped examples load. */
#include "config_folder.h"

#include "config/accelerator_file.h"
#include "config/main_file.h"

static char *read_text(const char *path)
{
	struct buf text = BUF_INIT(1 << 20);
	struct error e = {0};

	if (file_read(path, &text, &e))
		fail_msg("%s", e.text);
	return buf_detach(&text);
}

static int check_keys(const char *doc, const struct mapping *m)
{
	int n_missing = 0;

	for (const struct field *f = m->fields; f->key; f++) {
		char *row = xasprintf("\n| `%s%s%s` |", m->path, *m->path ? "." : "", f->key);

		if (!strstr(doc, row)) {
			print_error("docs/configuration.md has no row for %s.%s\n", m->path, f->key);
			n_missing++;
		}
		free(row);
		if (f->map)
			n_missing += check_keys(doc, f->map);
	}
	return n_missing;
}

static void test_every_key_is_documented(void **state)
{
	char *doc = read_text("docs/configuration.md");

	(void)state;
	assert_int_equal(check_keys(doc, &MAIN_MAPPING) + check_keys(doc, &ACCELERATOR_MAPPING), 0);
	free(doc);
}

/* Every key is in a line of its own or in braces, commented out or not. */
static int check_example(const char *text, const struct mapping *m)
{
	int n_missing = 0;

	for (const struct field *f = m->fields; f->key; f++) {
		char *key = xasprintf("%s:", f->key);

		if (!strstr(text, key)) {
			print_error("no example has %s.%s\n", m->path, f->key);
			n_missing++;
		}
		free(key);
		if (f->map)
			n_missing += check_example(text, f->map);
	}
	return n_missing;
}

static void copy(const char *path)
{
	char *from = xasprintf("%s/config/%s", folder_before, path), *text = read_text(from);

	folder_write(path, text);
	free(from);
	free(text);
}

static void test_examples_have_every_key(void **state)
{
	static const char *const vendors[] = {"ascend-npu", "example-hosted", "example-webhook", "example-pull"};
	char *text = read_text("config/outpost.yml"), *more;
	struct buf all = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(check_example(text, &MAIN_MAPPING), 0);
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(vendors); i++) {
		char *path = xasprintf("config/accelerators.d/%s.yml", vendors[i]);

		more = read_text(path);
		buf_append_str(&all, more);
		free(more);
		free(path);
	}
	assert_int_equal(check_example(buf_str(&all), &ACCELERATOR_MAPPING), 0);
	buf_release(&all);
}

static void test_examples_load(void **state)
{
	const struct accelerator *a;
	struct config *c;

	(void)state;
	copy("outpost.yml");
	copy("allowlist.yml");
	copy("ci_providers.yml");
	copy("accelerators.d/ascend-npu.yml");
	copy("accelerators.d/example-hosted.yml");
	copy("accelerators.d/example-webhook.yml");
	copy("accelerators.d/example-pull.yml");
	folder_write("secrets/github/webhook", "w");
	folder_write("secrets/example-webhook/hook", "h");
	folder_write_key("secrets/github/private-key.pem");
	c = folder_load();
	assert_int_equal(c->n_oidc_issuers, 2);
	assert_int_equal(c->n_accelerators, 8);
	a = config_accelerator(c, "ascend-npu");
	assert_int_equal(a->level, LEVEL_3);
	assert_string_equal(a->triggers.schedules[0], "0 2 * * *");
	a = config_accelerator(c, "example-hosted");
	assert_int_equal(a->runners[0].kind, RUNNER_INFRA);
	assert_int_equal(secret_bytes(config_accelerator(c, "example-webhook")->runners[0].secret), 1);
	assert_int_equal(config_accelerator(c, "example-pull")->runners[0].max_parallel, 2);
	assert_int_equal(config_accelerator(c, "example-npu")->n_runners, 2);
	config_unref(c);
}

/* Each example is a complete accelerator's file, and says which of its parts were not verified. */
static void test_platform_examples_load(void **state)
{
	static const char *const names[] = {"ascend-npu", "cpu", "cuda", "gaudi-hpu", "rocm", "tpu", "xpu"};
	struct config *c;

	(void)state;
	copy("outpost.yml");
	copy("allowlist.yml");
	copy("ci_providers.yml");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *from = xasprintf("%s/config/platforms/%s.yml", folder_before, names[i]);
		char *to = xasprintf("accelerators.d/%s.yml", names[i]), *text = read_text(from);

		folder_write(to, text);
		free(from);
		free(to);
		free(text);
	}
	folder_write("secrets/github/webhook", "w");
	folder_write_key("secrets/github/private-key.pem");
	c = folder_load();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct accelerator *a = config_accelerator(c, names[i]);

		assert_non_null(a);
		assert_non_null(a->platform);
		assert_int_equal(a->level, LEVEL_2);
		assert_non_null(a->platform->start_code);
		assert_true(a->platform->n_steps > 0 && a->platform->n_help > 0);
	}
	config_unref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_key_is_documented),
	    cmocka_unit_test(test_examples_have_every_key),
	    cmocka_unit_test_setup_teardown(test_examples_load, folder_setup, folder_teardown),
	    cmocka_unit_test_setup_teardown(test_platform_examples_load, folder_setup, folder_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
