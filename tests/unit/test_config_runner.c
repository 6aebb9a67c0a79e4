/* outpost-runner's file: the example, every default, and the message for each mistake. */
#include "config_folder.h"

#include "config/runner_config.h"
#include "config/runner_file.h"

#define MINIMAL                                                                                                        \
	"server: https://outpost.example.org/\n"                                                                       \
	"name: npu-17\n"                                                                                               \
	"token_file: token\n"                                                                                          \
	"accelerator: ascend-npu\n"                                                                                    \
	"steps:\n"                                                                                                     \
	"  - {name: test, run: ./test.sh}\n"

static int setup(void **state)
{
	int rc = folder_setup(state);

	folder_write("token", "a-token\n");
	return rc;
}

static struct runner_config *load(const char *text)
{
	struct buf messages = BUF_INIT(1 << 20);
	struct runner_config *c;
	int rc;

	folder_write("runner.yml", text);
	rc = runner_config_load("runner.yml", &c, &messages);
	assert_string_equal(buf_str(&messages), "");
	assert_int_equal(rc, 0);
	buf_release(&messages);
	return c;
}

static void expect(const char *text, const char *expected_messages)
{
	struct buf messages = BUF_INIT(1 << 20);
	struct runner_config *c;
	int rc;

	folder_write("runner.yml", text);
	rc = runner_config_load("runner.yml", &c, &messages);
	assert_string_equal(buf_str(&messages), expected_messages);
	assert_int_equal(rc, ERR_INVALID);
	assert_null(c);
	buf_release(&messages);
}

static void a_short_file_has_defaults(void **state)
{
	struct runner_config *c = load(MINIMAL);
	char *work = xasprintf("%s/runner.yml", folder_path);

	(void)state;
	assert_string_equal(c->server, "https://outpost.example.org");
	assert_string_equal(secret_text(c->authorization), "Authorization: Bearer a-token");
	assert_string_equal(runner_config_token(c), "a-token");
	assert_string_equal(c->path, work);
	assert_string_equal(c->work_dir, "/var/lib/outpost-runner");
	assert_false(c->has_checkout);
	assert_int_equal(c->sandbox, SANDBOX_BUBBLEWRAP);
	assert_false(c->allow_network);
	assert_int_equal(strv_len((const char *const *)c->allow_devices), 0);
	assert_int_equal(c->n_steps, 1);
	assert_int_equal(c->timeout_ms, 12 * 3600 * 1000);
	assert_int_equal(c->steps[0].timeout_ms, c->timeout_ms);
	assert_null(c->report_globs[0]);
	assert_int_equal(c->visibility, VISIBILITY_PUBLIC);
	assert_int_equal(c->log_max_bytes, 64 << 20);
	assert_int_equal(c->drain_ms, 600000);
	assert_int_equal(c->keep_jobs, 3);
	runner_config_free(c);
	free(work);
}

static void every_key_is_read(void **state)
{
	struct runner_config *c;
	char *work = xasprintf("%s/w", folder_path);

	(void)state;
	folder_write("hf", "s3cret");
	folder_write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
	c = load(MINIMAL "  - {name: more, run: \"a\\nb\", timeout: 5s}\n"
			 "labels: [npu, 910b]\n"
			 "ca_file: ca.pem\n"
			 "work_dir: w\n"
			 "checkout: {git_url: \"git@host:pytorch.git\", depth: 0, submodules: true}\n"
			 "allow: {network: true, devices: [/dev/kfd], read: [/opt], write: [/var/cache]}\n"
			 "timeout: 1h\n"
			 "environment: {A: \"1\", B: \"\"}\n"
			 "secrets: {HF_TOKEN: hf}\n"
			 "report: {files: [\"results/*.xml\", r.json], format: ctrf}\n"
			 "visibility: summary\n"
			 "log: {max: 256MiB, level: debug, format: json}\n"
			 "drain: 0s\n"
			 "keep: 0\n");
	assert_string_equal(c->work_dir, work);
	assert_string_equal(c->labels[1], "910b");
	assert_true(c->has_checkout && c->git_submodules);
	assert_int_equal(c->git_depth, 0);
	assert_true(c->allow_network);
	assert_string_equal(c->allow_write[0], "/var/cache");
	assert_int_equal(c->n_steps, 2);
	assert_string_equal(c->steps[1].run, "a\nb");
	assert_int_equal(c->steps[0].timeout_ms, 3600000);
	assert_int_equal(c->steps[1].timeout_ms, 5000);
	assert_int_equal(c->n_environment, 2);
	assert_string_equal(c->environment[1].value, "");
	assert_string_equal(c->secrets[0].name, "HF_TOKEN");
	assert_string_equal(secret_text(c->secrets[0].value), "s3cret");
	assert_string_equal(c->report_globs[1], "r.json");
	assert_string_equal(c->report_format, "ctrf");
	assert_int_equal(c->visibility, VISIBILITY_SUMMARY);
	assert_int_equal(c->log_max_bytes, 256 << 20);
	assert_int_equal(c->log_format, LOG_JSON);
	runner_config_free(c);
	free(work);
}

static void missing_and_unknown_keys_are_named(void **state)
{
	(void)state;
	expect("nam: x\n", "runner.yml:1: unknown key \"nam\"; did you mean \"name\"?\n"
			   "runner.yml:1: missing key \"server\"\n"
			   "runner.yml:1: missing key \"token_file\"\n"
			   "runner.yml:1: missing key \"accelerator\"\n"
			   "runner.yml:1: steps must be a list of {name, run, timeout}, not nothing\n");
	expect(MINIMAL "steps2: 1\n", "runner.yml:7: unknown key \"steps2\"; did you mean \"steps\"?\n");
	expect(MINIMAL "report: {format: junit}\n", "runner.yml:7: missing key \"report.files\"\n");
	expect(MINIMAL "report: {files: [], format: junit}\n", "runner.yml:7: report.files must not be empty\n");
}

static void wrong_values_say_what_they_must_be(void **state)
{
	static const struct {
		const char *more, *expected;
	} wrong[] = {
	    {"log: {max: 64}\n", "runner.yml:7: log.max must be a size from 1KiB to 256MiB (64KiB, 64MiB, 1GiB), "
				 "not \"64\"\n"},
	    {"log: {max: 257MiB}\n", "runner.yml:7: log.max must be a size from 1KiB to 256MiB (64KiB, 64MiB, 1GiB), "
				     "not \"257MiB\"\n"},
	    {"report: {files: [\"../x.xml\"]}\n",
		"runner.yml:7: report.files must be a path or glob relative to the job's work "
		"folder, without .., not \"../x.xml\"\n"},
	    {"report: {files: [/etc/passwd]}\n",
		"runner.yml:7: report.files must be a path or glob relative to the job's work "
		"folder, without .., not \"/etc/passwd\"\n"},
	    {"allow: {devices: [dev/kfd]}\n", "runner.yml:7: allow.devices must be an absolute path without .., not "
					      "\"dev/kfd\"\n"},
	    {"allow: {syscalls: [ptrace]}\n",
		"runner.yml:7: allow.syscalls: \"ptrace\" is not one of add_key, bpf, io_uring, "
		"kexec, keyctl, modules, mount, perf_event_open, request_key, tioclinux, tiocsti, "
		"user_namespaces, userfaultfd\n"},
	    {"checkout: {git_url: /x, submodule_proxy: \"proxy:3128\"}\n",
		"runner.yml:7: checkout.submodule_proxy must be a proxy's URL: http, https, socks5 "
		"or "
		"socks5h://host:port, not \"proxy:3128\"\n"},
	    /* git connects without a proxy where its URL names no host */
	    {"checkout: {git_url: /x, submodule_proxy: \"http://u:secret@/\"}\n",
		"runner.yml:7: checkout.submodule_proxy must be a proxy's URL: http, https, socks5 "
		"or "
		"socks5h://host:port, not \"http://u:secret@/\"\n"},
	    {"checkout: {git_url: /x, submodule_proxy: \"socks5h:///\"}\n",
		"runner.yml:7: checkout.submodule_proxy must be a proxy's URL: http, https, socks5 "
		"or "
		"socks5h://host:port, not \"socks5h:///\"\n"},
	    {"checkout: {git_url: /x, submodule_proxy: \"http://:3128\"}\n",
		"runner.yml:7: checkout.submodule_proxy must be a proxy's URL: http, https, socks5 "
		"or "
		"socks5h://host:port, not \"http://:3128\"\n"},
	    {"sandbox: none\nallow: {network: true}\n",
		"runner.yml:8: allow has no effect without a sandbox: remove it, or set sandbox: "
		"bubblewrap\n"},
	    {"environment: {1A: x}\n", "runner.yml:7: environment: a variable's name is letters, digits and _, not "
				       "\"1A\"\n"},
	    {"environment: {OUTPOST_PR: x}\n",
		"runner.yml:7: environment: \"OUTPOST_PR\" is reserved for outpost-runner; choose "
		"another name\n"},
	    {"environment: {A: x}\nsecrets: {A: token}\n",
		"runner.yml:8: \"A\" is given twice, in environment and secrets\n"},
	    {"environment: {A: [x]}\n", "runner.yml:7: environment.A must be a text of at most 32768 bytes\n"},
	    {"secrets: {A: nowhere}\n", "runner.yml:7: cannot use nowhere: No such file or directory\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		char *text = xasprintf("%s%s", MINIMAL, wrong[i].more);

		expect(text, wrong[i].expected);
		free(text);
	}
}

static void steps_are_checked(void **state)
{
#define WITHOUT_STEPS "server: https://o\nname: n\ntoken_file: token\naccelerator: a\n"
	(void)state;
	expect(WITHOUT_STEPS "steps: []\n", "runner.yml:5: steps must be 1 to 100, not 0\n");
	expect(WITHOUT_STEPS "steps: [{name: a}]\n", "runner.yml:5: missing key \"steps.run\"\n");
	expect(WITHOUT_STEPS "steps:\n  - {name: a, run: x}\n  - {name: a, run: y}\n",
	    "runner.yml:7: two steps are called \"a\"\n");
	expect(WITHOUT_STEPS "steps:\n  - {name: a, run: \"x\\a\"}\n",
	    "runner.yml:6: steps.run must be text without control characters, not \"x?\"\n");
}

static bool is_server(const char *url)
{
	struct reader r = {.path = ""};
	char why[WHY_BYTES];

	return check_server_url(&r, url, why);
}

static void plain_http_is_allowed_on_loopback_only(void **state)
{
	(void)state;
	assert_true(is_server("https://outpost.example.org"));
	assert_true(is_server("https://10.0.0.1:8443/outpost"));
	assert_true(is_server("http://127.0.0.1:8080"));
	assert_true(is_server("http://127.3.2.1"));
	assert_true(is_server("http://[::1]:8080"));
	assert_true(is_server("http://localhost:8080/"));
	assert_false(is_server("http://10.0.0.1"));
	assert_false(is_server("http://outpost.example.org"));
	assert_false(is_server("http://127.0.0.1.example.org"));
	assert_false(is_server("http://localhost.example.org"));
	assert_false(is_server("https://user@outpost.example.org"));
	assert_false(is_server("https://o/?x"));
	assert_false(is_server("ftp://o"));
}

static bool is_git(const char *url)
{
	struct reader r = {.path = ""};
	char why[WHY_BYTES];

	return check_git_url(&r, url, why);
}

static void git_urls_cannot_name_a_program(void **state)
{
	(void)state;
	assert_true(is_git("https://github.com/pytorch/pytorch.git"));
	assert_true(is_git("git@github.com:pytorch/pytorch.git"));
	assert_true(is_git("ssh://git@mirror/pytorch"));
	assert_true(is_git("file:///srv/pytorch.git"));
	assert_true(is_git("/srv/pytorch.git"));
	assert_false(is_git("ext::sh -c id"));
	assert_false(is_git("ext::sh@x:y"));
	assert_false(is_git("--upload-pack=id"));
	assert_false(is_git("-u@x:y"));
	assert_false(is_git("file://host/x"));
	assert_false(is_git("pytorch.git"));
	assert_false(is_git("https://h/ x"));
}

static void a_token_file_that_others_may_read_gets_a_warning(void **state)
{
	struct runner_config *c;

	(void)state;
	assert_int_equal(chmod("token", 0644), 0);
	c = load(MINIMAL);
	assert_non_null(c->exposed_files);
	assert_non_null(strstr(c->exposed_files[0], "token"));
	assert_null(c->exposed_files[1]);
	runner_config_free(c);
	assert_int_equal(chmod("token", 0640), 0);
	c = load(MINIMAL);
	assert_null(c->exposed_files);
	runner_config_free(c);
	assert_int_equal(chmod("token", 0600), 0);
}

static void a_token_is_one_line(void **state)
{
	(void)state;
	folder_write("token", "two words\n");
	expect(MINIMAL, "runner.yml:3: token has no token: it must be the one line that "
			"`outpostctl runner add` printed\n");
	folder_write("token", "\n");
	expect(MINIMAL, "runner.yml:3: cannot use token: empty\n");
}

static void a_rotated_token_is_read_again(void **state)
{
	struct runner_config *c = load(MINIMAL);
	struct error e = {0};
	struct secret *authorization;

	(void)state;
	folder_write("token", "another\n");
	assert_int_equal(runner_config_read_authorization(c, &authorization, &e), 0);
	assert_string_equal(secret_text(authorization), "Authorization: Bearer another");
	secret_unref(authorization);
	assert_int_equal(remove("token"), 0);
	assert_int_equal(runner_config_read_authorization(c, &authorization, &e), ERR_INVALID);
	assert_null(authorization);
	assert_non_null(strstr(e.text, "No such file"));
	runner_config_free(c);
}

static char *read_text(const char *path)
{
	char *whole = path[0] == '/' ? xstrdup(path) : xasprintf("%s/%s", folder_before, path);
	struct buf text = BUF_INIT(1 << 20);
	struct error e = {0};

	if (file_read(whole, &text, &e))
		fail_msg("%s", e.text);
	free(whole);
	return buf_detach(&text);
}

enum place { IN_EXAMPLE, IN_DOCS };

static int n_missing(const char *text, enum place place, const struct mapping *m)
{
	int n = 0;

	for (const struct field *f = m->fields; f->key; f++) {
		char *expected = place == IN_DOCS ? xasprintf("\n| `%s%s%s` |", m->path, *m->path ? "." : "", f->key)
						  : xasprintf("%s:", f->key);

		if (!strstr(text, expected)) {
			print_error("no %s\n", expected);
			n++;
		}
		free(expected);
		if (f->map)
			n += n_missing(text, place, f->map);
	}
	return n;
}

static void the_example_loads_and_has_every_key(void **state)
{
	char *text = read_text("config/runner.yml");
	struct runner_config *c;

	(void)state;
	assert_int_equal(n_missing(text, IN_EXAMPLE, &RUNNER_FILE_MAPPING), 0);
	folder_write("runner.token", "a-token\n");
	folder_write("hf.token", "another\n");
	c = load(text);
	assert_string_equal(c->name, "npu-17");
	assert_int_equal(c->n_steps, 2);
	assert_int_equal(c->n_secrets, 1);
	runner_config_free(c);
	free(text);
}

static void every_key_is_documented(void **state)
{
	char *text = read_text("docs/runner.md");

	(void)state;
	assert_int_equal(n_missing(text, IN_DOCS, &RUNNER_FILE_MAPPING), 0);
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_short_file_has_defaults),
	    TEST(every_key_is_read),
	    TEST(missing_and_unknown_keys_are_named),
	    TEST(wrong_values_say_what_they_must_be),
	    TEST(steps_are_checked),
	    TEST(plain_http_is_allowed_on_loopback_only),
	    TEST(git_urls_cannot_name_a_program),
	    TEST(a_token_file_that_others_may_read_gets_a_warning),
	    TEST(a_token_is_one_line),
	    TEST(a_rotated_token_is_read_again),
	    TEST(the_example_loads_and_has_every_key),
	    TEST(every_key_is_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
