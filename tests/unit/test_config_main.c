/* outpost.yml: the meaning of its keys, and the messages about mistakes. */
#include "config_folder.h"

static void test_defaults(void **state)
{
	struct config *c = folder_load();

	(void)state;
	assert_string_equal(c->path, "outpost.yml");
	assert_string_equal(c->listen, "127.0.0.1:8080");
	assert_string_equal(c->public_url, "https://outpost.example.org");
	assert_string_equal(c->state_dir, "state");
	assert_string_equal(c->store, "sqlite");
	assert_null(c->tls_certificate_pem);
	assert_int_equal(c->n_trusted_proxies, 0);
	assert_int_equal(c->log_level, LOG_INFO);
	assert_int_equal(c->log_format, LOG_TEXT);
	assert_string_equal(c->upstream_repository, "pytorch/pytorch");
	assert_string_equal(c->upstream_branches[0], "main");
	assert_null(c->upstream_branches[1]);
	assert_string_equal(c->upstream_git_url, "https://github.com/pytorch/pytorch.git");
	assert_string_equal(c->github_api_url, "https://api.github.com");
	assert_int_equal(c->github_app_id, 12345);
	assert_non_null(strstr(secret_text(c->github_private_key), "-----BEGIN PRIVATE KEY-----"));
	assert_string_equal(secret_text(c->github_webhook_secret), "s3cret");
	assert_int_equal(c->github_writes_per_minute, 80);
	assert_int_equal(c->github_max_concurrent, 50);
	assert_string_equal(c->oidc_audience, "pytorch-cross-repo-ci-relay");
	assert_int_equal(c->n_oidc_issuers, 1);
	assert_string_equal(c->oidc_issuers[0].issuer, "https://token.actions.githubusercontent.com");
	assert_null(c->infra_repository);
	assert_null(c->required_suites[0]);
	assert_int_equal(c->n_accelerators, 0);
	assert_true(c->comment_enabled);
	assert_int_equal(c->comment_min_interval_ms, 60000);
	assert_int_equal(c->retention_results_ms, INT64_C(400) * 86400000);
	assert_int_equal(c->retention_days_ms, INT64_C(800) * 86400000);
	assert_int_equal(c->reconcile_interval_ms, 300000);
	assert_int_equal(c->pull_lease_ms, 60000);
	config_unref(c);
}

static void test_everything_written(void **state)
{
	struct config *c;

	(void)state;
	folder_write("etc/tls/cert.pem", "-----BEGIN CERTIFICATE-----\n");
	folder_write("outpost.yml",
	    "listen: '[::1]:0'\n"
	    "public_url: http://127.0.0.1:9//\n"
	    "state_dir: /var/x\n"
	    "store: sqlite\n"
	    "tls: {certificate: etc/tls/cert.pem, private_key: key.pem}\n"
	    "trusted_proxies: [127.0.0.1, 'fd00::/8']\n"
	    "log: {level: debug, format: json}\n"
	    "upstream: {repository: me/fork, branches: [main, release/2.9]}\n"
	    "github:\n"
	    "  api_url: http://localhost:1234/\n"
	    "  app_id: 9223372036854775807\n"
	    "  private_key_file: key.pem\n"
	    "  webhook_secret_file: webhook\n"
	    "  oidc:\n"
	    "    issuers:\n"
	    "      - issuer: https://agent.buildkite.com\n"
	    "        jwks_url: https://agent.buildkite.com/jwks\n"
	    "        repositories:\n"
	    "          org/pipe: {repository: a/b, required_claims: {build_branch: [main, x]}}\n"
	    "infra: {repository: o/infra, trust: merged}\n"
	    "required: {suites: [model], must_pass: [model/x]}\n"
	    "outgoing: {allow_networks: [127.0.0.0/8]}\n"
	    "comment: {enabled: false, min_interval: 500ms}\n"
	    "pull: {lease: 1s}\n"
	    "accelerators:\n"
	    "  git: {url: https://github.com/o/registry}\n");
	c = folder_load();
	assert_string_equal(c->listen, "[::1]:0");
	assert_string_equal(c->public_url, "http://127.0.0.1:9");
	assert_string_equal(c->state_dir, "/var/x");
	assert_string_equal(c->tls_certificate_pem, "-----BEGIN CERTIFICATE-----");
	assert_string_equal(c->tls_private_key_file, "key.pem");
	assert_int_equal(c->n_trusted_proxies, 2);
	assert_int_equal(c->trusted_proxies[0].prefix_bits, 128);
	assert_int_equal(c->log_level, LOG_DEBUG);
	assert_int_equal(c->log_format, LOG_JSON);
	assert_string_equal(c->upstream_branches[1], "release/2.9");
	assert_string_equal(c->upstream_git_url, "https://github.com/me/fork.git");
	assert_string_equal(c->github_api_url, "http://localhost:1234");
	assert_int_equal(c->github_app_id, INT64_MAX);
	assert_int_equal(c->n_oidc_issuers, 1);
	assert_string_equal(c->oidc_issuers[0].mappings[0].key, "org/pipe");
	assert_string_equal(c->oidc_issuers[0].mappings[0].repository, "a/b");
	assert_string_equal(c->oidc_issuers[0].mappings[0].claims[0].name, "build_branch");
	assert_string_equal(c->oidc_issuers[0].mappings[0].claims[0].values[1], "x");
	assert_string_equal(c->infra_repository, "o/infra");
	assert_int_equal(c->infra_trust, TRUST_MERGED);
	assert_string_equal(c->required_must_pass[0], "model/x");
	assert_int_equal(c->n_allow_networks, 1);
	assert_false(c->comment_enabled);
	assert_int_equal(c->comment_min_interval_ms, 500);
	assert_int_equal(c->pull_lease_ms, 1000);
	assert_string_equal(c->accelerators_git_branch, "main");
	assert_int_equal(c->accelerators_git_interval_ms, 300000);
	config_unref(c);
}

/* The text after the minimal file, and the expected messages. Its first line is line 7. */
static const struct {
	const char *more, *expected;
} WRONG[] = {
    {"pull: {lease: 500ms}\n", "outpost.yml:7: pull.lease must be a duration from 1s to 1d (500ms, "
			       "30s, 10m, 6h, 30d), not \"500ms\"\n"},
    {"tirggers: 1\n", "outpost.yml:7: unknown key \"tirggers\"; the nearest known key is \"listen\"\n"},
    {"listne: 1\n", "outpost.yml:7: unknown key \"listne\"; did you mean \"listen\"?\n"},
    {"log: {lvel: info}\n", "outpost.yml:7: unknown key \"lvel\" in log; did you mean \"level\"?\n"},
    {"listen: 8080\n", "outpost.yml:7: listen must be host:port, as 127.0.0.1:8080 or "
		       "[::1]:8080, not \"8080\"\n"},
    {"listen: 127.0.0.1:65536\n", "outpost.yml:7: listen must be host:port, as 127.0.0.1:8080 "
				  "or [::1]:8080, not \"127.0.0.1:65536\"\n"},
    {"listen: [::1]\n", "outpost.yml:7: put an IPv6 address in a list in quotes, as "
			"\"::1\"\n"},
    {"trusted_proxies: [127.0.0.1, ::1]\n", "outpost.yml:7: put an IPv6 address in a list in quotes, as \"::1\"\n"},
    {"listen: ::1:80\n", "outpost.yml:7: listen must be host:port, as 127.0.0.1:8080 or "
			 "[::1]:8080, not \"::1:80\"\n"},
    {"state_dir: other\n", "outpost.yml:7: key \"state_dir\" is given twice; the first is in line 2\n"},
    {"store: postgres\n", "outpost.yml:7: store must be sqlite or postgresql://…, not \"postgres\"\n"},
    {"store: postgresql://u:pw@db/outpost\n",
	"outpost.yml:7: store must have no password: put it into the file of store_password_file\n"},
    {"store: postgresql://u:pw@db/outpost\nlogs: database\n",
	"outpost.yml:7: store must have no password: put it into the file of store_password_file\n"},
    {"store: mysql://db/outpost\nlogs: state_dir\n",
	"outpost.yml:7: store must be sqlite or postgresql://…, not \"mysql://db/outpost\"\n"},
    {"store: postgresql:///outpost?host=db&password=pw\n",
	"outpost.yml:7: store must have no password: put it into the file of store_password_file\n"},
    {"log: [a]\n", "outpost.yml:7: log must be a map, not a list\n"},
    {"log: {level: loud}\n", "outpost.yml:7: log.level must be one of debug, info, warn, error, not \"loud\"\n"},
    {"comment: {enabled: yes}\n", "outpost.yml:7: comment.enabled must be true or false, not \"yes\"\n"},
    {"comment:\n  min_interval: 60\n",
	"outpost.yml:8: comment.min_interval must be a duration from 0s to 1d (500ms, 30s, 10m, "
	"6h, 30d), not \"60\"\n"},
    {"retention: {logs: 12h}\n",
	"outpost.yml:7: retention.logs must be a duration from 1d to 36500d (500ms, 30s, 10m, 6h, "
	"30d), not \"12h\"\n"},
    {"upstream: {repository: pytorch}\n", "outpost.yml:7: upstream.repository must be owner/name, not \"pytorch\"\n"},
    {"upstream: {branches: []}\n", "outpost.yml:7: upstream.branches must not be empty\n"},
    {"upstream: {branches: main}\n", "outpost.yml:7: upstream.branches must be a list, not \"main\"\n"},
    {"upstream: {branches: [main, [x]]}\n", "outpost.yml:7: upstream.branches must be a text, not a list\n"},
    {"upstream: {branches: [a..b]}\n", "outpost.yml:7: upstream.branches must be a branch's name, not \"a..b\"\n"},
    {"infra: {trust: everybody}\n",
	"outpost.yml:7: infra.trust must be one of anyone, contributors, members, approved, "
	"merged, not \"everybody\"\n"
	"outpost.yml:7: missing key \"infra.repository\"\n"},
    {"trusted_proxies: [10.0.0.1/8]\n",
	"outpost.yml:7: trusted_proxies: \"10.0.0.1/8\" has bits set after its prefix\n"},
    {"outgoing: {allow_networks: [localhost]}\n",
	"outpost.yml:7: outgoing.allow_networks: \"localhost\" is not an address; write it like "
	"10.0.0.0/8 or fd00::/8\n"},
    {"tls: {certificate: none.pem}\n", "outpost.yml:7: missing key \"tls.private_key\"\n"
				       "outpost.yml:7: cannot read none.pem: No such file or directory\n"},
    {"tls: {certificate: webhook, private_key: webhook}\n",
	"outpost.yml:7: webhook is not a PEM file with a CERTIFICATE\n"
	"outpost.yml:7: webhook: not a private key in PEM, or damaged\n"},
    {"accelerators:\n  directory: a.d\n  git: {url: https://github.com/o/r}\n",
	"outpost.yml:8: cannot read a.d: No such file or directory\n"
	"outpost.yml:9: accelerators.git and accelerators.directory (line 8): set only one of "
	"them\n"},
    {"accelerators: {allowlist: none.yml}\n", "outpost.yml:7: cannot read none.yml: No such file or directory\n"},
    {"secrets_dir: ''\n", "outpost.yml:7: secrets_dir must be 1 to 4096 bytes, not 0\n"},
    {"required: {must_pass: [llama3]}\n", "outpost.yml:7: required.must_pass must be SUITE/TEST, not \"llama3\"\n"},
    {"? [a]\n: b\n", "outpost.yml:7: a key must be a text\n"},
    {"log: &x {level: info}\n", "outpost.yml:7: anchors (&…) are not supported; write the value\n"},
    {"log: *x\n", "outpost.yml:7: aliases (*…) are not supported; write the value\n"},
    {"log: !!map {level: info}\n", "outpost.yml:7: tags (!…) are not supported; write the plain value\n"},
    {"log:\n\tlevel: info\n", "outpost.yml:8: a tab in the indentation; YAML allows only spaces there\n"},
    {"---\na: b\n", "outpost.yml:7: a second document; one file holds one\n"},
    {"log: {level: info\n", "outpost.yml:8: YAML: did not find expected ',' or '}' while "
			    "parsing a flow mapping\n"},
    {"reopen: [* 2 * * *]\n",
	"outpost.yml:7: YAML: did not find expected alphabetic or numeric character while scanning "
	"an alias; put a value that begins with * in quotes\n"},
    {"log: Fast: really\n", "outpost.yml:7: YAML: mapping values are not allowed in this context; put a value with "
			    "\": \" in it in quotes, and indent the keys of one map alike\n"},
    {"log: info\n  level: info\n",
	"outpost.yml:8: YAML: mapping values are not allowed in this context; put a value with "
	"\": \" in it in quotes, and indent the keys of one map alike\n"},
    {"log: \x01\n", "outpost.yml:7: a control byte (0x01) in the file\n"},
    {"log: \xff\n", "outpost.yml:7: this line is not UTF-8\n"},
    {"\"a\\x9b2J\": 1\n", "outpost.yml:7: unknown key \"a??2J\"; the nearest known key is \"store\"\n"},
    {"public: \"\\0\"\n", "outpost.yml:7: a NUL character in a text\n"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		char *text = xasprintf("%s%s", MINIMAL_YML, WRONG[i].more);

		folder_write("outpost.yml", text);
		free(text);
		folder_expect(WRONG[i].expected);
	}
}

/* An issuer with an emptied map must not accept tokens that name their own repository. */
static void test_issuer_with_an_empty_map_is_refused(void **state)
{
	static const char *const written[] = {"{}", "", "~"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		char *text = xasprintf("public_url: https://outpost.example.org\nstate_dir: state\n"
				       "github:\n"
				       "  app_id: 1\n"
				       "  private_key_file: key.pem\n"
				       "  webhook_secret_file: webhook\n"
				       "  oidc:\n"
				       "    issuers:\n"
				       "      - issuer: https://agent.buildkite.com\n"
				       "        jwks_url: https://agent.buildkite.com/jwks\n"
				       "        repositories: %s\n",
		    written[i]);

		folder_write("outpost.yml", text);
		free(text);
		folder_expect("outpost.yml:11: github.oidc.issuers.repositories must not be empty; "
			      "without repositories, the issuer's `repository` claim is trusted\n");
	}
}

static void test_written_by_hand(void **state)
{
	static const char *const listens[] = {"listen: [::1]:8080\n", "listen: [::1]:8080 # both\n",
	    "listen:   [::1]:8080\r\n", "listen: '[::1]:8080'\n", "listen: [::1]:8080"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(listens); i++) {
		char *text = xasprintf("\xef\xbb\xbf" MINIMAL_YML "%s", listens[i]);
		struct config *c;

		folder_write("outpost.yml", text);
		free(text);
		c = folder_load();
		assert_string_equal(c->listen, "[::1]:8080");
		config_unref(c);
	}
}

static void test_missing_keys_are_all_named(void **state)
{
	(void)state;
	folder_write("outpost.yml", "# nothing yet\n");
	folder_expect("outpost.yml:1: missing key \"public_url\"\n"
		      "outpost.yml:1: missing key \"state_dir\"\n"
		      "outpost.yml:1: missing key \"github.app_id\"\n"
		      "outpost.yml:1: missing key \"github.private_key_file\"\n"
		      "outpost.yml:1: missing key \"github.webhook_secret_file\"\n");
	folder_write("outpost.yml", "public_url: https://x.example\ngithub:\n  app_id: -1\n");
	folder_expect("outpost.yml:1: missing key \"state_dir\"\n"
		      "outpost.yml:2: missing key \"github.private_key_file\"\n"
		      "outpost.yml:2: missing key \"github.webhook_secret_file\"\n"
		      "outpost.yml:3: github.app_id must be a whole number from 1, not \"-1\"\n");
}

static void test_secrets(void **state)
{
	struct config *c;

	(void)state;
	folder_write("webhook", "two\n\n");
	c = folder_load();
	assert_string_equal(secret_text(c->github_webhook_secret), "two\n");
	config_unref(c);
	folder_write("webhook", "three\r\n");
	c = folder_load();
	assert_string_equal(secret_text(c->github_webhook_secret), "three");
	config_unref(c);
	folder_write("webhook", "four\r");
	c = folder_load();
	assert_string_equal(secret_text(c->github_webhook_secret), "four\r");
	config_unref(c);
	folder_write("webhook", "\n");
	folder_expect("outpost.yml:6: cannot read webhook: empty\n");
	assert_int_equal(unlink("webhook"), 0);
	assert_int_equal(mkfifo("webhook", 0600), 0);
	folder_expect("outpost.yml:6: cannot read webhook: not a regular file\n");
	folder_write("webhook", "x");
	folder_write("key.pem", "x");
	folder_expect("outpost.yml:5: key.pem: not a private key in PEM, or damaged\n");
}

static void test_credentials(void **state)
{
	struct config *c;

	(void)state;
	folder_write("outpost.yml", "public_url: https://outpost.example.org\nstate_dir: state\n"
				    "github:\n  app_id: 1\n  private_key_file: key.pem\n"
				    "  webhook_secret_file: credential:hook\n");
	unsetenv("CREDENTIALS_DIRECTORY");
	folder_expect("outpost.yml:6: cannot read credential:hook: systemd sets no "
		      "$CREDENTIALS_DIRECTORY here\n");
	folder_write("credentials/hook", "from systemd\n");
	setenv("CREDENTIALS_DIRECTORY", "credentials", 1);
	c = folder_load();
	assert_string_equal(secret_text(c->github_webhook_secret), "from systemd");
	config_unref(c);
	folder_write("outpost.yml", MINIMAL_YML "tls: {certificate: 'credential:../webhook', "
						"private_key: key.pem}\n");
	folder_expect("outpost.yml:7: cannot read credential:../webhook: a credential's name has "
		      "no / and no leading .\n");
	unsetenv("CREDENTIALS_DIRECTORY");
}

static void test_unreadable_and_large(void **state)
{
	struct buf text = BUF_INIT(2 << 20);

	(void)state;
	assert_int_equal(unlink("outpost.yml"), 0);
	folder_expect("outpost.yml:1: cannot read outpost.yml: No such file or directory\n");
	while (text.len <= 1 << 20)
		buf_append_str(&text, "# a comment that goes on and on\n");
	folder_write("outpost.yml", buf_str(&text));
	folder_expect("outpost.yml:1: cannot read outpost.yml: larger than 1048576 bytes\n");
	buf_clear(&text);
	for (int i = 0; i < 100; i++)
		buf_append_char(&text, '[');
	folder_write("outpost.yml", buf_str(&text));
	folder_expect("outpost.yml:1: nested deeper than 16 levels\n");
	buf_release(&text);
}

static void test_paths_are_relative_to_the_file(void **state)
{
	struct buf messages = BUF_INIT(4096);
	struct config *c;

	(void)state;
	folder_write("etc/outpost.yml", MINIMAL_YML);
	folder_write_key("etc/key.pem");
	folder_write("etc/webhook", "w");
	assert_int_equal(config_load("etc/outpost.yml", &c, &messages), 0);
	assert_string_equal(c->state_dir, "etc/state");
	assert_string_equal(c->secrets_dir, "etc/secrets");
	config_unref(c);
	buf_release(&messages);
}

static void test_place_of_logs(void **state)
{
	static const char files[] = "s3: {access_key_file: access, secret_key_file: s3secret, region: eu-west-1, "
				    "endpoint: 'http://minio:9000/x/'}\n";
	static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	    "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
	struct config *c = folder_load(), *s3;
	struct config_fixed running;
	char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	assert_null(c->logs_folder);
	assert_null(c->logs_s3);
	config_fixed_init(&running, c);
	config_unref(c);
	folder_write("outpost.yml", MINIMAL_YML "logs: state_dir\n");
	c = folder_load();
	assert_null(config_needs_restart(&running, c, 0));
	config_unref(c);
	folder_write("sub/outpost.yml", "");
	folder_write("outpost.yml", MINIMAL_YML "logs: shared/logs\n");
	c = folder_load();
	assert_string_equal(c->logs_folder, "shared/logs");
	assert_int_equal(c->logs_line, 7);
	assert_string_equal(config_needs_restart(&running, c, 0), "logs");
	config_unref(c);
	folder_write("access", "AKIA:x\n");
	folder_write("s3secret", "a/b+c=\n");
	text = xasprintf(MINIMAL_YML "logs: s3://ci-logs/a/b.c/\n%s", files);
	folder_write("outpost.yml", text);
	free(text);
	s3 = folder_load();
	assert_string_equal(s3->logs_s3, "ci-logs/a/b.c");
	assert_null(s3->logs_folder);
	assert_string_equal(s3->s3_endpoint, "http://minio:9000/x");
	assert_string_equal(s3->s3_region, "eu-west-1");
	assert_string_equal(secret_text(s3->s3_access_key), "AKIA:x");
	assert_string_equal(secret_text(s3->s3_secret_key), "a/b+c=");
	assert_null(s3->s3_session_token);
	assert_string_equal(config_needs_restart(&running, s3, 0), "logs");
	config_fixed_release(&running);
	config_unref(s3);
	/* the variables that S3's own tools read */
	folder_write("outpost.yml", MINIMAL_YML "logs: s3://ci-logs\n");
	folder_expect("outpost.yml:7: logs: S3 needs s3.access_key_file and s3.secret_key_file, or the variables "
		      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n");
	setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "envsecret", 1);
	setenv("AWS_DEFAULT_REGION", "eu-north-1", 1);
	c = folder_load();
	assert_string_equal(c->s3_endpoint, "https://s3.eu-north-1.amazonaws.com");
	assert_string_equal(secret_text(c->s3_secret_key), "envsecret");
	assert_null(c->s3_session_token);
	config_unref(c);
	setenv("AWS_SESSION_TOKEN", "token", 1);
	setenv("AWS_REGION", "us-west-2", 1);
	setenv("AWS_ENDPOINT_URL", "https://s3.example.org/", 1);
	c = folder_load();
	assert_string_equal(c->s3_endpoint, "https://s3.example.org");
	assert_string_equal(c->s3_region, "us-west-2");
	assert_string_equal(secret_text(c->s3_session_token), "token");
	config_unref(c);
	setenv("AWS_REGION", "nowhere:else", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "two words", 1);
	folder_expect(
	    "outpost.yml:7: logs: the variable AWS_REGION must be letters a-z, digits and - between them, not "
	    "\"nowhere:else\"\n"
	    "outpost.yml:7: AWS_SECRET_ACCESS_KEY is not a key of S3: it has a character that no key has\n");
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	/* mistakes */
	folder_write("outpost.yml", MINIMAL_YML "logs: s3://ci-logs\ns3:\n  access_key_file: access\n");
	folder_expect("outpost.yml:8: s3 must have access_key_file and secret_key_file, or neither\n");
	static const char *const places[] = {"https://x", "s3://", "s3://ab", "s3:///p", "s3://ci-logs//p",
	    "s3://ci-logs/../p", "s3://ci-logs/p?x", "s3://ci-logs/ä", "s3://ci-logs/a%41"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct buf messages = BUF_INIT(1 << 20);

		text = xasprintf(MINIMAL_YML "logs: %s\n%s", places[i], files);
		folder_write("outpost.yml", text);
		assert_int_equal(config_load("outpost.yml", &c, &messages), ERR_INVALID);
		assert_non_null(strstr(buf_str(&messages), "outpost.yml:7: logs must be "));
		buf_release(&messages);
		free(text);
	}
	/* the database is a place with PostgreSQL only, and its default */
	folder_write("outpost.yml", MINIMAL_YML "logs: database\n");
	folder_expect(
	    "outpost.yml:7: logs: database needs store: postgresql://…; with SQLite use state_dir, a folder or "
	    "s3://BUCKET/PREFIX\n");
	folder_write("outpost.yml", MINIMAL_YML "logs: state_dir\nstore: postgresql:///outpost\n");
	folder_expect(
	    "outpost.yml:7: logs: state_dir needs store: sqlite, because the other daemons cannot read it; with "
	    "PostgreSQL use database, a folder that all daemons mount, or s3://BUCKET/PREFIX\n");
	folder_write("outpost.yml", MINIMAL_YML "store: postgresql:///outpost\n");
	c = folder_load();
	assert_true(c->has_logs_in_database);
	config_unref(c);
	folder_write("outpost.yml", MINIMAL_YML "store: postgresql:///outpost\nlogs: /shared\n");
	c = folder_load();
	assert_false(c->has_logs_in_database);
	assert_string_equal(c->logs_folder, "/shared");
	config_unref(c);
	text = xasprintf(MINIMAL_YML "%s", files);
	folder_write("outpost.yml", text);
	free(text);
	c = folder_load();
	assert_false(c->has_logs_in_database);
	assert_int_equal(c->notes.n, 1);
	assert_string_equal(c->notes.all[0].text, "s3 has no effect, because logs is not s3://BUCKET/PREFIX");
	config_unref(c);
}

static void test_references_and_restarts(void **state)
{
	struct config *a = folder_load(), *b;
	struct config_fixed running;

	(void)state;
	folder_write("outpost.yml", MINIMAL_YML "listen: 127.0.0.1:9\n");
	b = folder_load();
	config_fixed_init(&running, a);
	assert_string_equal(config_needs_restart(&running, b, 0), "listen");
	assert_null(config_needs_restart(&running, b, 1));
	assert_null(config_needs_restart(&running, a, 0));
	running.has_tls = true;
	assert_string_equal(config_needs_restart(&running, b, 1), "tls");
	assert_null(config_needs_restart(&running, b, 2));
	config_fixed_release(&running);
	config_unref(b);
	folder_write("password", "old\n");
	folder_write("outpost.yml", MINIMAL_YML "store: postgresql://db/outpost\nstore_password_file: password\n");
	b = folder_load();
	config_fixed_init(&running, b);
	config_unref(b);
	folder_write("password", "new\n");
	b = folder_load();
	assert_string_equal(config_needs_restart(&running, b, 0), "store_password_file");
	config_fixed_release(&running);
	assert_ptr_equal(config_ref(a), a);
	config_unref(a);
	assert_string_equal(a->state_dir, "state");
	config_unref(a);
	config_unref(b);
	config_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
	    T(test_defaults),
	    T(test_everything_written),
	    T(test_wrong),
	    T(test_issuer_with_an_empty_map_is_refused),
	    T(test_written_by_hand),
	    T(test_missing_keys_are_all_named),
	    T(test_secrets),
	    T(test_credentials),
	    T(test_unreadable_and_large),
	    T(test_paths_are_relative_to_the_file),
	    T(test_place_of_logs),
	    T(test_references_and_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
