/* What outpost-runner's file has as lists and maps: steps, environment, secrets, system calls. */
#include <ctype.h>

#include "base/alloc.h"
#include "base/str.h"
#include "config/runner_file.h"

enum { STEPS_MAX = 100, VARIABLES_MAX = 500, VALUE_MAX_BYTES = 32768, SCRIPT_MAX_BYTES = 65536 };

#define AT(member) offsetof(struct runner_step, member)

static const struct field STEP_FIELDS[] = {
    {"name", field_text, REQUIRED, .offset = AT(name), .check = check_line, .max = 64},
    {"run", field_text, REQUIRED, .offset = AT(run), .check = check_script,
	.max = SCRIPT_MAX_BYTES},
    {"timeout", field_duration, OPTIONAL, .offset = AT(timeout_ms), .min = 100,
	.max = INT64_C(30) * 86400000},
    {.key = NULL},
};
const struct mapping RUNNER_STEP_MAPPING = {"steps", STEP_FIELDS};

static void check_unique(
    struct reader *r, const struct runner_config *c, const struct runner_step *one, int line)
{
	char value[SHOWN_BYTES];

	for (size_t i = 0; one->name && i < c->n_steps; i++)
		if (str_eq(c->steps[i].name, one->name))
			problem_add(r->problems, r->file, line, "two steps are called %s",
			    shown(one->name, value));
}

void field_runner_steps(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_config *c = target;

	if (v->kind != NODE_LIST) {
		refuse_kind(r, f, v, "a list of {name, run, timeout}");
		return;
	}
	if (v->n < 1 || v->n > STEPS_MAX) {
		problem_add(r->problems, r->file, v->line, "steps must be 1 to %d, not %zu",
		    STEPS_MAX, v->n);
		return;
	}
	c->steps = xcalloc(v->n, sizeof(*c->steps));
	for (size_t i = 0; i < v->n; i++) {
		struct runner_step one = {0};

		read_mapping(r, f->map, v->values[i], &one);
		check_unique(r, c, &one, v->values[i]->line);
		c->steps[c->n_steps++] = one;
	}
}

static bool is_variable_name(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > 128 || isdigit((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static bool has_name(const struct runner_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_environment; i++)
		if (str_eq(c->environment[i].name, name))
			return true;
	for (size_t i = 0; i < c->n_secrets; i++)
		if (str_eq(c->secrets[i].name, name))
			return true;
	return false;
}

/* A name that a step may get, and which no other entry has. */
static bool is_name_right(
    struct reader *r, const struct field *f, const struct runner_config *c, const struct node *key)
{
	char name[SHOWN_BYTES];

	if (!is_variable_name(key->text))
		problem_add(r->problems, r->file, key->line,
		    "%s: a variable's name is letters, digits and _, not %s", f->key,
		    shown(key->text, name));
	else if (str_has_prefix(key->text, "OUTPOST_"))
		problem_add(r->problems, r->file, key->line,
		    "%s: %s is one of those that outpost-runner sets; take another name", f->key,
		    shown(key->text, name));
	else if (has_name(c, key->text))
		problem_add(r->problems, r->file, key->line,
		    "%s is given twice, in environment and secrets", shown(key->text, name));
	else
		return true;
	return false;
}

static bool is_variable_map(struct reader *r, const struct field *f, const struct node *v)
{
	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a map of NAME: value");
		return false;
	}
	if (v->n > VARIABLES_MAX)
		problem_add(r->problems, r->file, v->line, "%s has more than %d entries", f->key,
		    VARIABLES_MAX);
	return v->n <= VARIABLES_MAX;
}

void field_runner_environment(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_config *c = target;

	if (!is_variable_map(r, f, v))
		return;
	c->environment = xcalloc(v->n + 1, sizeof(*c->environment));
	for (size_t i = 0; i < v->n; i++) {
		const struct node *value = v->values[i];

		if (!is_name_right(r, f, c, v->keys[i]))
			continue;
		if (value->kind != NODE_SCALAR || strlen(value->text) > VALUE_MAX_BYTES) {
			problem_add(r->problems, r->file, value->line,
			    "environment.%s must be a text of at most %d bytes", v->keys[i]->text,
			    VALUE_MAX_BYTES);
			continue;
		}
		c->environment[c->n_environment++] = (struct runner_variable){
		    .name = xstrdup(v->keys[i]->text), .value = xstrdup(value->text)};
	}
}

void field_runner_secrets(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct runner_file *file = target;
	struct runner_config *c = &file->c;

	if (!is_variable_map(r, f, v))
		return;
	c->secrets = xcalloc(v->n + 1, sizeof(*c->secrets));
	file->secrets = xcalloc(v->n + 1, sizeof(*file->secrets));
	for (size_t i = 0; i < v->n; i++) {
		const struct field path = {
		    .key = v->keys[i]->text, .check = check_line, .max = 4096};

		if (!is_name_right(r, f, c, v->keys[i]))
			continue;
		r->path = "secrets";
		field_file(r, &path, v->values[i], &file->secrets[c->n_secrets]);
		r->path = "";
		c->secrets[c->n_secrets++] =
		    (struct runner_secret){.name = xstrdup(v->keys[i]->text)};
	}
}

/* ---- allow.syscalls ---- */

const char *guarded_call_name(enum guarded_call c)
{
	static const char *const names[] = {
#define GUARDED_CALL_NAME(id, name) [CALL_##id] = (name),
	    GUARDED_CALLS(GUARDED_CALL_NAME)
#undef GUARDED_CALL_NAME
	};

	return names[c];
}

static bool allow_call(struct runner_config *c, const char *name)
{
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		if (str_eq(guarded_call_name((enum guarded_call)i), name)) {
			c->allow_calls[i] = true;
			return true;
		}
	return false;
}

void field_guarded_calls(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct buf names = BUF_INIT(1024);

	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a list");
		return;
	}
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		buf_appendf(&names, "%s%s", i ? ", " : "", guarded_call_name((enum guarded_call)i));
	for (size_t i = 0; i < v->n; i++) {
		const struct node *one = v->values[i];
		char value[SHOWN_BYTES];

		if (one->kind != NODE_SCALAR)
			refuse_kind(r, f, one, "a name");
		else if (!allow_call(target, one->text))
			problem_add(r->problems, r->file, one->line,
			    "allow.syscalls: %s is not one of %s", shown(one->text, value),
			    buf_str(&names));
	}
	buf_release(&names);
}
