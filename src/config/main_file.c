#include "config/main_file.h"

#include "config/accelerator_file.h"

#define AT(member) offsetof(struct main_file, member)

/* CRCR's criteria for levels 3 and 4. Deadlines count only if the file sets them. */
#define CRCR_THRESHOLDS                                                                                                \
	.tenure_ms = DAYS(30), .data_ms = DAYS(14), .end_to_end_ms = SECONDS(3 * 3600), .queue_ms = SECONDS(1800),     \
	.overrun_percent = 1, .timeout_percent = 1, .pass_percent = 90

static const struct mapping TLS =
    MAPPING("tls", {"certificate", field_file, REQUIRED, AT(tls_certificate), check_line, .max = PATH_MAX_LEN},
	{"private_key", field_file, REQUIRED, AT(tls_private_key), check_line, .max = PATH_MAX_LEN});

static field_read_fn field_s3;

static const struct mapping S3 =
    MAPPING("s3", {"endpoint", field_text, OPTIONAL, AT(c.s3_endpoint), check_public_url, .max = 1024},
	{"region", field_text, OPTIONAL, AT(c.s3_region), check_name, .max = 63},
	{"access_key_file", field_file, OPTIONAL, AT(s3_access_key), check_line, .max = PATH_MAX_LEN},
	{"secret_key_file", field_file, OPTIONAL, AT(s3_secret_key), check_line, .max = PATH_MAX_LEN});

static const struct mapping LOG =
    MAPPING("log", {"level", field_choice, OPTIONAL, .offset = AT(c.log_level), .choices = LOG_LEVELS},
	{"format", field_choice, OPTIONAL, .offset = AT(c.log_format), .choices = LOG_FORMATS});

static const struct mapping UPSTREAM =
    MAPPING("upstream", {"repository", field_text, OPTIONAL, AT(c.upstream_repository), check_repository, .max = 201},
	{"branches", field_texts, OPTIONAL, AT(c.upstream_branches), check_branch, .min = 1, .max = 255},
	{"git_url", field_text, OPTIONAL, AT(c.upstream_git_url), check_service_url, .max = 2048});

static const struct mapping OIDC =
    MAPPING("github.oidc", {"audience", field_text, OPTIONAL, AT(c.oidc_audience), check_line, .max = 255},
	{"issuers", field_issuers, OPTIONAL, .offset = AT(c), .map = &OIDC_ISSUER_MAPPING},
	{"ci_providers", field_file, OPTIONAL, AT(ci_providers), check_line, .max = PATH_MAX_LEN});

static const struct mapping GITHUB = MAPPING("github",
    {"api_url", field_text, OPTIONAL, AT(c.github_api_url), check_service_url, .max = 2048},
    {"app_id", field_integer64, REQUIRED, .offset = AT(c.github_app_id), .min = 1, .max = INT64_MAX},
    {"private_key_file", field_file, REQUIRED, AT(private_key), check_line, .max = PATH_MAX_LEN},
    {"webhook_secret_file", field_file, REQUIRED, AT(webhook_secret), check_line, .max = PATH_MAX_LEN},
    {"writes_per_minute", field_integer, OPTIONAL, .offset = AT(c.github_writes_per_minute), .min = 1, .max = 100000},
    {"max_concurrent", field_integer, OPTIONAL, .offset = AT(c.github_max_concurrent), .min = 1, .max = 1000},
    {"oidc", field_map, OPTIONAL, .map = &OIDC});

static const struct mapping INFRA =
    MAPPING("infra", {"repository", field_text, REQUIRED, AT(c.infra_repository), check_repository, .max = 201},
	{"repository_id", field_integer64, OPTIONAL, .offset = AT(c.infra_repository_id), .min = 1, .max = INT64_MAX},
	{"repository_owner_id", field_integer64, OPTIONAL, .offset = AT(c.infra_repository_owner_id), .min = 1,
	    .max = INT64_MAX},
	{"trust", field_choice, OPTIONAL, .offset = AT(c.infra_trust), .choices = TRUSTS});

static const struct mapping REQUIRED_TESTS =
    MAPPING("required", {"suites", field_texts, OPTIONAL, AT(c.required_suites), check_suite, .max = 100},
	{"must_pass", field_texts, OPTIONAL, AT(c.required_must_pass), check_test, .max = 300});

static const struct mapping OUTGOING =
    MAPPING("outgoing", {"allow_networks", field_networks, OPTIONAL, .offset = AT(allow_networks)});

static const struct mapping GIT = MAPPING("accelerators.git",
    {"url", field_text, REQUIRED, AT(c.accelerators_git_url), check_service_url, .max = 2048},
    {"branch", field_text, OPTIONAL, AT(c.accelerators_git_branch), check_branch, .max = 255},
    {"path", field_text, OPTIONAL, AT(c.accelerators_git_path), check_relative_path, .max = 1024},
    {"interval", field_duration, OPTIONAL, .offset = AT(c.accelerators_git_interval_ms), .min = SECONDS(1),
	.max = DAYS(1)});

static field_read_fn field_git;

static const struct mapping ACCELERATORS =
    MAPPING("accelerators", {"directory", field_file, OPTIONAL, AT(directory), check_line, .max = PATH_MAX_LEN},
	{"allowlist", field_file, OPTIONAL, AT(allowlist), check_line, .max = PATH_MAX_LEN},
	{"git", field_git, OPTIONAL, .map = &GIT});

static const struct mapping COMMENT =
    MAPPING("comment", {"enabled", field_bool, OPTIONAL, .offset = AT(c.comment_enabled)},
	{"min_interval", field_duration, OPTIONAL, .offset = AT(c.comment_min_interval_ms), .min = 0, .max = DAYS(1)});

static const struct mapping RETENTION = MAPPING("retention",
    {"deliveries", field_duration, OPTIONAL, .offset = AT(c.retention_deliveries_ms), .min = DAYS(1),
	.max = DAYS(36500)},
    {"logs", field_duration, OPTIONAL, .offset = AT(c.retention_logs_ms), .min = DAYS(1), .max = DAYS(36500)},
    {"results", field_duration, OPTIONAL, .offset = AT(c.retention_results_ms), .min = DAYS(1), .max = DAYS(36500)},
    {"days", field_duration, OPTIONAL, .offset = AT(c.retention_days_ms), .min = DAYS(1), .max = DAYS(36500)});

static const struct mapping RECONCILE = MAPPING("reconcile",
    {"interval", field_duration, OPTIONAL, .offset = AT(c.reconcile_interval_ms), .min = 100, .max = DAYS(1)});

static const struct mapping SCHEDULE = MAPPING(
    "schedule", {"jitter", field_duration, OPTIONAL, .offset = AT(c.schedule_jitter_ms), .min = 0, .max = DAYS(1)});

static const struct mapping PULL = MAPPING(
    "pull", {"lease", field_duration, OPTIONAL, .offset = AT(c.pull_lease_ms), .min = SECONDS(1), .max = DAYS(1)});

static const struct mapping ATTRIBUTION = MAPPING("attribution",
    {"window", field_duration, OPTIONAL, .offset = AT(c.attribution_window_ms), .min = SECONDS(1), .max = DAYS(30)},
    {"distance", field_integer, OPTIONAL, .offset = AT(c.attribution_distance), .min = 0, .max = 1000});

static const struct choice L3_CONCLUSIONS[] = {{"neutral", false}, {"failure", true}, {NULL, 0}};

static field_read_fn field_l3;

static const struct mapping CHECKS =
    MAPPING("checks", {"enabled", field_bool, OPTIONAL, .offset = AT(c.checks_enabled)},
	{"l3", field_l3, OPTIONAL, .offset = AT(c.checks_l3_may_fail), .choices = L3_CONCLUSIONS});

#define LEVEL_TIME(key, member)                                                                                        \
	{                                                                                                              \
		key, field_duration, OPTIONAL, .offset = AT(member), .min = 0, .max = DAYS(3650)                       \
	}
#define LEVEL_PERCENT(key, member)                                                                                     \
	{                                                                                                              \
		key, field_integer, OPTIONAL, .offset = AT(member), .min = 0, .max = 100                               \
	}
#define LEVEL_FIELDS(member)                                                                                           \
	LEVEL_TIME("tenure", member.tenure_ms), LEVEL_TIME("data", member.data_ms),                                    \
	    LEVEL_TIME("end_to_end_time", member.end_to_end_ms), LEVEL_TIME("queue_time", member.queue_ms),            \
	    LEVEL_PERCENT("overrun_rate", member.overrun_percent),                                                     \
	    LEVEL_PERCENT("timeout_rate", member.timeout_percent), LEVEL_PERCENT("pass_rate", member.pass_percent),    \
	    LEVEL_PERCENT("deadlines_met", member.deadlines_percent), LEVEL_TIME("reaction_time", member.reaction_ms), \
	{                                                                                                              \
		"proposed", field_bool, OPTIONAL, .offset = AT(member.is_proposed)                                     \
	}

static const struct mapping LEVEL_3_MAP = MAPPING("levels.L3", LEVEL_FIELDS(c.level_3));
static const struct mapping LEVEL_4_MAP = MAPPING("levels.L4", LEVEL_FIELDS(c.level_4));
static const struct mapping PROMOTION = MAPPING(
    "levels", {"L3", field_map, OPTIONAL, .map = &LEVEL_3_MAP}, {"L4", field_map, OPTIONAL, .map = &LEVEL_4_MAP});

/* Log lines show the URL of the database, and not the text of a wrong one, which may have a password. */
static void field_store(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct main_file *m = target;
	size_t n_problems = r->problems->n;

	m->c.store_line = v->line;
	if (v->text && store_has_password(v->text))
		refuse_at(r, v->line, "%s must have no password: put it into the file of store_password_file",
		    FIELD_NAME(r, f));
	else
		field_text(r, f, v, &m->c.store);
	if (r->problems->n != n_problems)
		FREE_AND_NULL(m->c.store);
}

const struct mapping MAIN_MAPPING = MAPPING("",
    {"listen", field_text, OPTIONAL, AT(c.listen), check_listen, .max = 300},
    {"public_url", field_text, REQUIRED, AT(c.public_url), check_public_url, .max = 1024},
    {"state_dir", field_file, REQUIRED, AT(state_dir), check_line, .max = PATH_MAX_LEN},
    {"store", field_store, OPTIONAL, .check = check_store, .max = 1024},
    {"store_password_file", field_file, OPTIONAL, AT(store_password), check_line, .max = PATH_MAX_LEN},
    {"node", field_text, OPTIONAL, AT(c.node), check_line, .max = 100},
    {"logs", field_file, OPTIONAL, AT(logs), check_logs, .max = PATH_MAX_LEN}, {"s3", field_s3, OPTIONAL, .map = &S3},
    {"tls", field_map, OPTIONAL, .map = &TLS},
    {"trusted_proxies", field_networks, OPTIONAL, .offset = AT(trusted_proxies)},
    {"log", field_map, OPTIONAL, .map = &LOG}, {"upstream", field_map, OPTIONAL, .map = &UPSTREAM},
    {"github", field_map, REQUIRED, .map = &GITHUB}, {"infra", field_map, OPTIONAL, .map = &INFRA},
    {"required", field_map, OPTIONAL, .map = &REQUIRED_TESTS},
    {"secrets_dir", field_file, OPTIONAL, AT(secrets_dir), check_line, .max = PATH_MAX_LEN},
    {"outgoing", field_map, OPTIONAL, .map = &OUTGOING}, {"accelerators", field_map, OPTIONAL, .map = &ACCELERATORS},
    {"comment", field_map, OPTIONAL, .map = &COMMENT}, {"retention", field_map, OPTIONAL, .map = &RETENTION},
    {"reconcile", field_map, OPTIONAL, .map = &RECONCILE}, {"schedule", field_map, OPTIONAL, .map = &SCHEDULE},
    {"pull", field_map, OPTIONAL, .map = &PULL}, {"attribution", field_map, OPTIONAL, .map = &ATTRIBUTION},
    {"checks", field_map, OPTIONAL, .map = &CHECKS}, {"levels", field_map, OPTIONAL, .map = &PROMOTION});

static void field_git(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct main_file *m = target;

	m->git.line = v->line;
	m->c.accelerators_git_branch = xstrdup("main");
	m->c.accelerators_git_path = xstrdup("accelerators.d");
	m->c.accelerators_git_interval_ms = SECONDS(300);
	read_mapping(r, f->map, v, m);
}

static void field_s3(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	((struct main_file *)target)->s3_line = v->line;
	read_mapping(r, f->map, v, target);
}

static void field_l3(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	int may_fail = false;

	field_choice(r, f, v, &may_fail);
	*(bool *)target = may_fail;
}

void main_file_read(struct reader *r, const struct node *root, struct main_file *ret)
{
	static const char *const branches[] = {"main", NULL};

	*ret = (struct main_file){.secrets_dir = {.path = xstrdup("secrets")}};
	ret->c = (struct config){
	    .listen = xstrdup("127.0.0.1:8080"),
	    .store = xstrdup("sqlite"),
	    .log_level = LOG_INFO,
	    .log_format = LOG_TEXT,
	    .upstream_repository = xstrdup("pytorch/pytorch"),
	    .upstream_branches = strv_copy(branches),
	    .github_api_url = xstrdup("https://api.github.com"),
	    .github_writes_per_minute = 80,
	    .github_max_concurrent = 50,
	    .oidc_audience = xstrdup("pytorch-cross-repo-ci-relay"),
	    .infra_trust = TRUST_CONTRIBUTORS,
	    .required_suites = strv_copy(NULL),
	    .required_must_pass = strv_copy(NULL),
	    .comment_enabled = true,
	    .comment_min_interval_ms = SECONDS(60),
	    .retention_deliveries_ms = DAYS(30),
	    .retention_logs_ms = DAYS(90),
	    .retention_results_ms = DAYS(400),
	    .retention_days_ms = DAYS(800),
	    .reconcile_interval_ms = SECONDS(300),
	    .schedule_jitter_ms = SECONDS(15 * 60),
	    .pull_lease_ms = SECONDS(60),
	    .attribution_window_ms = DAYS(7),
	    .attribution_distance = 20,
	    .checks_enabled = true,
	    .level_3 = {CRCR_THRESHOLDS, .is_proposed = true},
	    .level_4 = {CRCR_THRESHOLDS},
	};
	read_mapping(r, &MAIN_MAPPING, root, ret);
	url_cut_slashes(ret->c.public_url);
	url_cut_slashes(ret->c.github_api_url);
	if (!ret->c.upstream_git_url)
		ret->c.upstream_git_url = xasprintf("https://github.com/%s.git", ret->c.upstream_repository);
	if (!ret->c.oidc_issuers)
		oidc_default_issuers(&ret->c);
	if (ret->directory.path && ret->git.line)
		refuse_at(r, ret->git.line,
		    "accelerators.git and accelerators.directory (line %d): set only one of them", ret->directory.line);
	ret->has_accelerators = ret->directory.path || ret->git.line || ret->allowlist.path;
}

void main_file_release(struct main_file *m)
{
	config_release(&m->c);
	FREE_ALL(m->trusted_proxies.items, m->allow_networks.items, m->store_password.path, m->tls_certificate.path,
	    m->tls_private_key.path, m->private_key.path, m->webhook_secret.path, m->state_dir.path,
	    m->secrets_dir.path, m->directory.path, m->allowlist.path, m->ci_providers.path, m->logs.path,
	    m->s3_access_key.path, m->s3_secret_key.path);
}
