/* The grammar of outpost-runner's file and its defaults. */
#include "config/runner_file.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/runner_protocol.h"

#define AT(member)   offsetof(struct runner_file, member)
#define SECONDS(n)   (INT64_C(1000) * (n))
#define HOURS(n)     (INT64_C(3600000) * (n))
#define MIB(n)       ((int64_t)(n) << 20)
#define PATH_MAX_LEN 4096

static const struct choice LOG_LEVELS[] = {
    {"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN}, {"error", LOG_ERROR}, {NULL, 0}};
static const struct choice LOG_FORMATS[] = {{"text", LOG_TEXT}, {"json", LOG_JSON}, {NULL, 0}};
static const struct choice SANDBOXES[] = {
    {"none", SANDBOX_NONE}, {"bubblewrap", SANDBOX_BUBBLEWRAP}, {NULL, 0}};
static const struct choice VISIBILITIES[] = {
    {"public", VISIBILITY_PUBLIC}, {"summary", VISIBILITY_SUMMARY}, {NULL, 0}};
static const struct choice FORMATS[] = {{"junit", 0}, {"ctrf", 1}, {"outpost", 2}, {NULL, 0}};

static const struct field CHECKOUT_FIELDS[] = {
    {"git_url", field_text, REQUIRED, .offset = AT(c.git_url), .check = check_git_url, .max = 2048},
    {"depth", field_integer, OPTIONAL, .offset = AT(c.git_depth), .min = 0, .max = 1000000},
    {"submodules", field_bool, OPTIONAL, .offset = AT(c.git_submodules)},
    {"git_config", field_file, OPTIONAL, .offset = AT(git_config), .check = check_line,
	.max = PATH_MAX_LEN},
    {"allow_networks", field_networks, OPTIONAL, .offset = AT(c.git_networks)},
    {"submodule_proxy", field_text, OPTIONAL, .offset = AT(c.submodule_proxy),
	.check = check_proxy_url, .max = 1024},
    {.key = NULL},
};
static const struct mapping CHECKOUT = {"checkout", CHECKOUT_FIELDS};

static const struct field ALLOW_FIELDS[] = {
    {"network", field_bool, OPTIONAL, .offset = AT(c.allow_network)},
    {"devices", field_texts, OPTIONAL, .offset = AT(c.allow_devices), .check = check_absolute_path,
	.max = PATH_MAX_LEN},
    {"read", field_texts, OPTIONAL, .offset = AT(c.allow_read), .check = check_absolute_path,
	.max = PATH_MAX_LEN},
    {"write", field_texts, OPTIONAL, .offset = AT(c.allow_write), .check = check_absolute_path,
	.max = PATH_MAX_LEN},
    {"syscalls", field_guarded_calls, OPTIONAL, .offset = AT(c)},
    {.key = NULL},
};
static const struct mapping ALLOW = {"allow", ALLOW_FIELDS};

static const struct field REPORT_FIELDS[] = {
    {"files", field_texts, REQUIRED, .offset = AT(c.report_globs), .check = check_report_glob,
	.min = 1, .max = 1024},
    {"format", field_choice, OPTIONAL, .offset = AT(format), .choices = FORMATS},
    {.key = NULL},
};
static const struct mapping REPORT = {"report", REPORT_FIELDS};

static const struct field LOG_FIELDS[] = {
    {"max", field_size, OPTIONAL, .offset = AT(c.log_max_bytes), .min = 1024, .max = MIB(256)},
    {"level", field_choice, OPTIONAL, .offset = AT(c.log_level), .choices = LOG_LEVELS},
    {"format", field_choice, OPTIONAL, .offset = AT(c.log_format), .choices = LOG_FORMATS},
    {.key = NULL},
};
static const struct mapping LOG = {"log", LOG_FIELDS};

static field_read_fn field_checkout, field_allow;

static const struct field RUNNER_FILE_FIELDS[] = {
    {"server", field_text, REQUIRED, .offset = AT(c.server), .check = check_server_url,
	.max = 1024},
    {"name", field_text, REQUIRED, .offset = AT(c.name), .check = check_machine_name,
	.max = RUNNER_NAME_MAX_BYTES},
    {"token_file", field_file, REQUIRED, .offset = AT(token), .check = check_line,
	.max = PATH_MAX_LEN},
    {"ca_file", field_file, OPTIONAL, .offset = AT(ca), .check = check_line, .max = PATH_MAX_LEN},
    {"accelerator", field_text, REQUIRED, .offset = AT(c.accelerator), .check = check_name,
	.max = 63},
    {"labels", field_texts, OPTIONAL, .offset = AT(c.labels), .check = check_line,
	.max = RUNNER_NAME_MAX_BYTES},
    {"work_dir", field_file, OPTIONAL, .offset = AT(work_dir), .check = check_line,
	.max = PATH_MAX_LEN},
    {"checkout", field_checkout, OPTIONAL, .map = &CHECKOUT},
    {"sandbox", field_choice, OPTIONAL, .offset = AT(c.sandbox), .choices = SANDBOXES},
    {"allow", field_allow, OPTIONAL, .map = &ALLOW},
    {"steps", field_runner_steps, REQUIRED, .offset = AT(c), .map = &RUNNER_STEP_MAPPING},
    {"timeout", field_duration, OPTIONAL, .offset = AT(c.timeout_ms), .min = 100,
	.max = HOURS(720)},
    {"environment", field_runner_environment, OPTIONAL, .offset = AT(c)},
    {"secrets", field_runner_secrets, OPTIONAL, .offset = 0},
    {"report", field_map, OPTIONAL, .map = &REPORT},
    {"visibility", field_choice, OPTIONAL, .offset = AT(c.visibility), .choices = VISIBILITIES},
    {"log", field_map, OPTIONAL, .map = &LOG},
    {"drain", field_duration, OPTIONAL, .offset = AT(c.drain_ms), .min = 0, .max = HOURS(48)},
    {"keep", field_integer, OPTIONAL, .offset = AT(c.keep_jobs), .min = 0, .max = 10000},
    {.key = NULL},
};
const struct mapping RUNNER_FILE_MAPPING = {"", RUNNER_FILE_FIELDS};

static void field_checkout(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_file *file = target;

	file->c.has_checkout = true;
	read_mapping(r, f->map, v, file);
}

static void field_allow(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_file *file = target;

	file->allow.line = v->line;
	read_mapping(r, f->map, v, file);
}

static void set_defaults(struct runner_file *f)
{
	*f = (struct runner_file){
	    .c =
		{
		    .labels = strv_copy(NULL),
		    .git_depth = 1,
		    .sandbox = SANDBOX_BUBBLEWRAP,
		    .allow_devices = strv_copy(NULL),
		    .allow_read = strv_copy(NULL),
		    .allow_write = strv_copy(NULL),
		    .timeout_ms = HOURS(12),
		    .report_globs = strv_copy(NULL),
		    .visibility = VISIBILITY_PUBLIC,
		    .log_max_bytes = MIB(64),
		    .drain_ms = SECONDS(600),
		    .keep_jobs = 3,
		    .log_level = LOG_INFO,
		    .log_format = LOG_TEXT,
		},
	    .work_dir = {.path = xstrdup("/var/lib/outpost-runner"), .line = 1},
	};
}

static void check_together(struct reader *r, struct runner_file *f)
{
	if (f->allow.line && f->c.sandbox == SANDBOX_NONE)
		problem_add(r->problems, r->file, f->allow.line,
		    "allow opens the sandbox, but there is none: take it out, or set sandbox: "
		    "bubblewrap");
	if (strv_len((const char *const *)f->c.labels) > RUNNER_LABELS_MAX)
		problem_add(
		    r->problems, r->file, 1, "labels has more than %d entries", RUNNER_LABELS_MAX);
	for (size_t i = 0; i < f->c.n_steps; i++)
		if (!f->c.steps[i].timeout_ms)
			f->c.steps[i].timeout_ms = f->c.timeout_ms;
}

void runner_file_read(struct reader *r, const struct node *root, struct runner_file *ret)
{
	set_defaults(ret);
	read_mapping(r, &RUNNER_FILE_MAPPING, root, ret);
	for (size_t n = ret->c.server ? strlen(ret->c.server) : 0; n && ret->c.server[n - 1] == '/';
	     n--)
		ret->c.server[n - 1] = '\0';
	ret->c.report_format = xstrdup(FORMATS[ret->format].name);
	check_together(r, ret);
}

void runner_file_release(struct runner_file *f)
{
	for (size_t i = 0; f->secrets && i < f->c.n_secrets; i++)
		free(f->secrets[i].path);
	free(f->secrets);
	free(f->token.path);
	free(f->ca.path);
	free(f->work_dir.path);
	free(f->git_config.path);
}
