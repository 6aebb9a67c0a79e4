/* The grammar of outpost-runner's file and its defaults. */
#include "config/runner_file.h"

#include "model/runner_protocol.h"

#define AT(member) offsetof(struct runner_file, member)
#define MIB(n)     ((int64_t)(n) << 20)

static const struct choice SANDBOXES[] = {{"none", SANDBOX_NONE}, {"bubblewrap", SANDBOX_BUBBLEWRAP}, {NULL, 0}};
static const struct choice FORMATS[] = {{"junit", 0}, {"ctrf", 1}, {"outpost", 2}, {NULL, 0}};

static bool check_machine_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			return check_failed(why, "letters, digits, -, . and _");
	return true;
}

static bool has_parent_part(const char *s)
{
	for (; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
		if (str_has_prefix(s, "..") && (s[2] == '/' || s[2] == '\0'))
			return true;
	return false;
}

static bool check_absolute_path(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (*s == '/' && !has_parent_part(s) && check_line(r, s, why)) ||
	       check_failed(why, "an absolute path without ..");
}

static bool check_report_glob(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (*s != '/' && !has_parent_part(s) && check_line(r, s, why)) ||
	       check_failed(why, "a path or glob relative to the job's work folder, without ..");
}

static bool check_script(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if (((unsigned char)*c < 0x20 && !strchr("\n\t", *c)) || *c == 0x7f)
			return check_failed(why, "text without control characters");
	return true;
}

#define STEP_AT(member) offsetof(struct runner_step, member)

enum { STEPS_MAX = 100, VARIABLES_MAX = 500, VALUE_MAX_BYTES = 32768, SCRIPT_MAX_BYTES = 65536 };

static const struct mapping RUNNER_STEP_MAPPING =
    MAPPING("steps", {"name", field_text, REQUIRED, STEP_AT(name), check_line, .max = 64},
	{"run", field_text, REQUIRED, STEP_AT(run), check_script, .max = SCRIPT_MAX_BYTES},
	{"timeout", field_duration, OPTIONAL, .offset = STEP_AT(timeout_ms), .min = 100, .max = DAYS(30)});

static void field_runner_steps(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_config *c = target;

	if (v->kind != NODE_LIST) {
		refuse_kind(r, f, v, "a list of {name, run, timeout}");
		return;
	}
	if (v->n < 1 || v->n > STEPS_MAX) {
		refuse_at(r, v->line, "steps must be 1 to %d, not %zu", STEPS_MAX, v->n);
		return;
	}
	c->steps = xcalloc(v->n, sizeof(*c->steps));
	for (size_t i = 0; i < v->n; i++) {
		struct runner_step one = {0};

		read_mapping(r, f->map, v->values[i], &one);
		for (size_t k = 0; one.name && k < c->n_steps; k++)
			if (str_eq(c->steps[k].name, one.name))
				refuse_at(r, v->values[i]->line, "two steps are called %s", QUOTED(one.name));
		c->steps[c->n_steps++] = one;
	}
}

/* Reports a name that a step cannot have, or that another entry has. */
static bool check_variable_name(
    struct reader *r, const struct field *f, const struct runner_config *c, const struct node *key)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	bool is_given = false;
	size_t n = strlen(key->text);

	for (size_t i = 0; i < c->n_environment; i++)
		is_given |= str_eq(c->environment[i].name, key->text);
	for (size_t i = 0; i < c->n_secrets; i++)
		is_given |= str_eq(c->secrets[i].name, key->text);
	if (n == 0 || n > 128 || isdigit((unsigned char)*key->text) || strspn(key->text, letters) != n)
		refuse_at(
		    r, key->line, "%s: a variable's name is letters, digits and _, not %s", f->key, QUOTED(key->text));
	else if (str_has_prefix(key->text, "OUTPOST_"))
		refuse_at(r, key->line, "%s: %s is reserved for outpost-runner; choose another name", f->key,
		    QUOTED(key->text));
	else if (is_given)
		refuse_at(r, key->line, "%s is given twice, in environment and secrets", QUOTED(key->text));
	else
		return true;
	return false;
}

static bool expect_variables(struct reader *r, const struct field *f, const struct node *v)
{
	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a map of NAME: value");
		return false;
	}
	if (v->n > VARIABLES_MAX)
		refuse_at(r, v->line, "%s has more than %d entries", f->key, VARIABLES_MAX);
	return v->n <= VARIABLES_MAX;
}

static void field_runner_environment(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_config *c = target;

	if (!expect_variables(r, f, v))
		return;
	c->environment = xcalloc(v->n + 1, sizeof(*c->environment));
	for (size_t i = 0; i < v->n; i++) {
		const struct node *value = v->values[i];

		if (!check_variable_name(r, f, c, v->keys[i]))
			continue;
		if (value->kind != NODE_SCALAR || strlen(value->text) > VALUE_MAX_BYTES) {
			refuse_at(r, value->line, "environment.%s must be a text of at most %d bytes", v->keys[i]->text,
			    VALUE_MAX_BYTES);
			continue;
		}
		c->environment[c->n_environment++] =
		    (struct runner_variable){.name = xstrdup(v->keys[i]->text), .value = xstrdup(value->text)};
	}
}

static void field_runner_secrets(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_file *file = target;
	struct runner_config *c = &file->c;

	if (!expect_variables(r, f, v))
		return;
	c->secrets = xcalloc(v->n + 1, sizeof(*c->secrets));
	file->secrets = xcalloc(v->n + 1, sizeof(*file->secrets));
	for (size_t i = 0; i < v->n; i++) {
		const struct field path = {.key = v->keys[i]->text, .check = check_line, .max = 4096};

		if (!check_variable_name(r, f, c, v->keys[i]))
			continue;
		r->path = "secrets";
		field_file(r, &path, v->values[i], &file->secrets[c->n_secrets]);
		r->path = "";
		c->secrets[c->n_secrets++] = (struct runner_secret){.name = xstrdup(v->keys[i]->text)};
	}
}

const char *guarded_call_name(enum guarded_call c)
{
	static const char *const names[] = {
#define GUARDED_CALL_NAME(id, name) [CALL_##id] = (name),
	    GUARDED_CALLS(GUARDED_CALL_NAME)
#undef GUARDED_CALL_NAME
	};

	return names[c];
}

static void field_guarded_calls(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_config *c = target;
	struct buf names = BUF_INIT(1024);

	if (!expect_kind(r, f, v, NODE_LIST))
		return;
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		buf_appendf(&names, "%s%s", i ? ", " : "", guarded_call_name((enum guarded_call)i));
	for (size_t i = 0; i < v->n; i++) {
		const struct node *one = v->values[i];
		int call = 0;

		if (one->kind != NODE_SCALAR) {
			refuse_kind(r, f, one, "a name");
			continue;
		}
		while (call < N_GUARDED_CALLS && !str_eq(guarded_call_name((enum guarded_call)call), one->text))
			call++;
		if (call < N_GUARDED_CALLS)
			c->allow_calls[call] = true;
		else
			refuse_at(
			    r, one->line, "allow.syscalls: %s is not one of %s", QUOTED(one->text), buf_str(&names));
	}
	buf_release(&names);
}

static const struct mapping CHECKOUT =
    MAPPING("checkout", {"git_url", field_text, REQUIRED, AT(c.git_url), check_git_url, .max = 2048},
	{"depth", field_integer, OPTIONAL, .offset = AT(c.git_depth), .min = 0, .max = 1000000},
	{"submodules", field_bool, OPTIONAL, .offset = AT(c.git_submodules)},
	{"git_config", field_file, OPTIONAL, AT(git_config), check_line, .max = PATH_MAX_LEN},
	{"allow_networks", field_networks, OPTIONAL, .offset = AT(c.git_networks)},
	{"submodule_proxy", field_text, OPTIONAL, AT(c.submodule_proxy), check_proxy_url, .max = 1024});

static const struct mapping ALLOW = MAPPING("allow", {"network", field_bool, OPTIONAL, .offset = AT(c.allow_network)},
    {"devices", field_texts, OPTIONAL, AT(c.allow_devices), check_absolute_path, .max = PATH_MAX_LEN},
    {"read", field_texts, OPTIONAL, AT(c.allow_read), check_absolute_path, .max = PATH_MAX_LEN},
    {"write", field_texts, OPTIONAL, AT(c.allow_write), check_absolute_path, .max = PATH_MAX_LEN},
    {"syscalls", field_guarded_calls, OPTIONAL, .offset = AT(c)});

static const struct mapping REPORT =
    MAPPING("report", {"files", field_texts, REQUIRED, AT(c.report_globs), check_report_glob, .min = 1, .max = 1024},
	{"format", field_choice, OPTIONAL, .offset = AT(format), .choices = FORMATS});

static const struct mapping LOG =
    MAPPING("log", {"max", field_size, OPTIONAL, .offset = AT(c.log_max_bytes), .min = 1024, .max = MIB(256)},
	{"level", field_choice, OPTIONAL, .offset = AT(c.log_level), .choices = LOG_LEVELS},
	{"format", field_choice, OPTIONAL, .offset = AT(c.log_format), .choices = LOG_FORMATS});

static field_read_fn field_checkout, field_allow;

const struct mapping RUNNER_FILE_MAPPING =
    MAPPING("", {"server", field_text, REQUIRED, AT(c.server), check_server_url, .max = 1024},
	{"name", field_text, REQUIRED, AT(c.name), check_machine_name, .max = RUNNER_NAME_MAX_BYTES},
	{"token_file", field_file, REQUIRED, AT(token), check_line, .max = PATH_MAX_LEN},
	{"ca_file", field_file, OPTIONAL, AT(ca), check_line, .max = PATH_MAX_LEN},
	{"accelerator", field_text, REQUIRED, AT(c.accelerator), check_name, .max = 63},
	{"labels", field_texts, OPTIONAL, AT(c.labels), check_line, .max = RUNNER_NAME_MAX_BYTES},
	{"work_dir", field_file, OPTIONAL, AT(work_dir), check_line, .max = PATH_MAX_LEN},
	{"checkout", field_checkout, OPTIONAL, .map = &CHECKOUT},
	{"sandbox", field_choice, OPTIONAL, .offset = AT(c.sandbox), .choices = SANDBOXES},
	{"allow", field_allow, OPTIONAL, .map = &ALLOW},
	{"steps", field_runner_steps, REQUIRED, .offset = AT(c), .map = &RUNNER_STEP_MAPPING},
	{"timeout", field_duration, OPTIONAL, .offset = AT(c.timeout_ms), .min = 100, .max = HOURS(720)},
	{"environment", field_runner_environment, OPTIONAL, .offset = AT(c)},
	{"secrets", field_runner_secrets, OPTIONAL, .offset = 0}, {"report", field_map, OPTIONAL, .map = &REPORT},
	{"visibility", field_choice, OPTIONAL, .offset = AT(c.visibility), .choices = VISIBILITIES},
	{"log", field_map, OPTIONAL, .map = &LOG},
	{"drain", field_duration, OPTIONAL, .offset = AT(c.drain_ms), .min = 0, .max = HOURS(48)},
	{"keep", field_integer, OPTIONAL, .offset = AT(c.keep_jobs), .min = 0, .max = 10000});

static void field_checkout(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	((struct runner_file *)target)->c.has_checkout = true;
	read_mapping(r, f->map, v, target);
}

static void field_allow(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	((struct runner_file *)target)->allow.line = v->line;
	read_mapping(r, f->map, v, target);
}

void runner_file_read(struct reader *r, const struct node *root, struct runner_file *ret)
{
	*ret = (struct runner_file){.work_dir = {.path = xstrdup("/var/lib/outpost-runner"), .line = 1}};
	ret->c = (struct runner_config){
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
	};
	read_mapping(r, &RUNNER_FILE_MAPPING, root, ret);
	url_cut_slashes(ret->c.server);
	ret->c.report_format = xstrdup(FORMATS[ret->format].name);
	if (ret->allow.line && ret->c.sandbox == SANDBOX_NONE)
		refuse_at(
		    r, ret->allow.line, "allow has no effect without a sandbox: remove it, or set sandbox: bubblewrap");
	if (strv_len((const char *const *)ret->c.labels) > RUNNER_LABELS_MAX)
		refuse_at(r, 1, "labels has more than %d entries", RUNNER_LABELS_MAX);
	for (size_t i = 0; i < ret->c.n_steps; i++)
		if (!ret->c.steps[i].timeout_ms)
			ret->c.steps[i].timeout_ms = ret->c.timeout_ms;
}

void runner_file_release(struct runner_file *f)
{
	for (size_t i = 0; f->secrets && i < f->c.n_secrets; i++)
		free(f->secrets[i].path);
	FREE_ALL(f->secrets, f->token.path, f->ca.path, f->work_dir.path, f->git_config.path);
}
