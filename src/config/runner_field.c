#include "config/runner_field.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/accelerator_file.h"

enum { RUNNERS_MAX = 100 };

struct draft {
	struct runner runner;
	struct file_ref secret;
};

#define AT(member) offsetof(struct draft, member)

static const struct field GITHUB_FIELDS[] = {
    {"repository", field_text, REQUIRED, .offset = AT(runner.repository), .check = check_repository,
	.max = 201},
    {"repository_id", field_integer64, OPTIONAL, .offset = AT(runner.repository_id), .min = 1,
	.max = INT64_MAX},
    {"repository_owner_id", field_integer64, OPTIONAL, .offset = AT(runner.repository_owner_id),
	.min = 1, .max = INT64_MAX},
    {"workflow", field_text, OPTIONAL, .offset = AT(runner.workflow), .check = check_workflow,
	.max = 255},
    {.key = NULL},
};
static const struct mapping GITHUB = {"runners.github", GITHUB_FIELDS};

static const struct field WEBHOOK_FIELDS[] = {
    {"url", field_text, REQUIRED, .offset = AT(runner.url), .check = check_vendor_url, .max = 2048},
    {"secret", field_file, REQUIRED, .offset = AT(secret), .check = check_secret_name, .max = 64},
    {.key = NULL},
};
static const struct mapping WEBHOOK = {"runners.webhook", WEBHOOK_FIELDS};

static const struct field PULL_FIELDS[] = {
    {"labels", field_texts, OPTIONAL, .offset = AT(runner.labels), .check = check_line, .max = 100},
    {"max_parallel", field_integer, OPTIONAL, .offset = AT(runner.max_parallel), .min = 1,
	.max = 1000},
    {.key = NULL},
};
static const struct mapping PULL = {"runners.pull", PULL_FIELDS};

static const struct choice RERUNS[] = {
    {"none", RERUNS_NONE}, {"tests", RERUNS_TESTS}, {"whole", RERUNS_WHOLE}, {NULL, 0}};

static const struct field RUNNER_FIELDS[] = {
    {"name", field_text, REQUIRED, .offset = AT(runner.name), .check = check_name, .max = 63},
    {"nightly_only", field_bool, OPTIONAL, .offset = AT(runner.is_nightly_only)},
    {"reruns", field_choice, OPTIONAL, .offset = AT(runner.reruns), .choices = RERUNS},
    {"github", field_map, OPTIONAL, .map = &GITHUB},
    {"webhook", field_map, OPTIONAL, .map = &WEBHOOK},
    {"pull", field_map, OPTIONAL, .map = &PULL},
    {.key = NULL},
};
const struct mapping RUNNER_MAPPING = {"runners", RUNNER_FIELDS};

static void read_kind(struct reader *r, const struct node *v, struct runner *runner)
{
	static const enum runner_kind kinds[] = {RUNNER_GITHUB, RUNNER_WEBHOOK, RUNNER_PULL};
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (tree_get(v, runner_kind_name(kinds[i]))) {
			runner->kind = kinds[i];
			n++;
		}
	if (n != 1)
		problem_add(r->problems, r->file, v->line,
		    "a runner has one of github, webhook and pull, not %s", n ? "several" : "none");
}

/* Experiments explain pull requests, and such a runner tests none. */
static void check_reruns(struct reader *r, const struct node *v, const struct runner *runner)
{
	if (runner->is_nightly_only && runner->reruns != RERUNS_NONE)
		problem_add(r->problems, r->file, v->line,
		    "a runner with nightly_only gets no experiments: leave reruns out");
}

static void check_unique(
    struct reader *r, const struct accelerator *a, const struct runner *one, int line)
{
	char value[SHOWN_BYTES];

	for (size_t i = 0; one->name && i < a->n_runners; i++)
		if (str_eq(a->runners[i].name, one->name))
			problem_add(r->problems, r->file, line, "two runners are called %s",
			    shown(one->name, value));
}

void field_runners(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct accelerator_file *file = target;
	struct accelerator *a = &file->a;

	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a list");
		return;
	}
	if (v->n > RUNNERS_MAX) {
		problem_add(r->problems, r->file, v->line, "more than %d runners", RUNNERS_MAX);
		return;
	}
	a->runners = xcalloc(v->n, sizeof(*a->runners));
	file->secrets = xcalloc(v->n, sizeof(*file->secrets));
	for (size_t i = 0; i < v->n; i++) {
		struct draft d = {.runner = {.labels = strv_copy(NULL), .max_parallel = 1}};

		read_mapping(r, f->map, v->values[i], &d);
		if (v->values[i]->kind == NODE_MAP)
			read_kind(r, v->values[i], &d.runner);
		check_reruns(r, v->values[i], &d.runner);
		check_unique(r, a, &d.runner, v->values[i]->line);
		file->secrets[a->n_runners] = d.secret;
		a->runners[a->n_runners++] = d.runner;
	}
}
