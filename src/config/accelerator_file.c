#include "config/accelerator_file.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/platform_file.h"
#include "config/runner_field.h"

#define AT(member) offsetof(struct accelerator_file, member)
#define MINUTES(n) (INT64_C(60000) * (n))
#define DAYS(n)    (INT64_C(86400000) * (n))

/* A GitHub label has at most 50 characters, and "ciflow/crcr/NAME" is one. */
enum { NAME_MAX_BYTES = 38 };

static const struct choice LEVELS[] = {
    {"L1", LEVEL_1}, {"L2", LEVEL_2}, {"L3", LEVEL_3}, {"L4", LEVEL_4}, {NULL, 0}};
const struct choice TRUSTS[] = {{"anyone", TRUST_ANYONE}, {"contributors", TRUST_CONTRIBUTORS},
    {"members", TRUST_MEMBERS}, {"approved", TRUST_APPROVED}, {"merged", TRUST_MERGED}, {NULL, 0}};
static const struct choice VISIBILITIES[] = {
    {"public", VISIBILITY_PUBLIC}, {"summary", VISIBILITY_SUMMARY}, {NULL, 0}};
static const struct choice LABEL_RULES[] = {
    {"optional", LABEL_OPTIONAL}, {"required", LABEL_REQUIRED}, {NULL, 0}};

static field_read_fn field_pull_request, field_push, field_share;

static const struct field LINKS_FIELDS[] = {
    {"docs", field_text, OPTIONAL, .offset = AT(a.docs_url), .check = check_link_url, .max = 1024},
    {"help", field_text, OPTIONAL, .offset = AT(a.help_url), .check = check_link_url, .max = 1024},
    {.key = NULL},
};
static const struct mapping LINKS = {"links", LINKS_FIELDS};

static const struct field SOURCE_FIELDS[] = {
    {"git_url", field_text, REQUIRED, .offset = AT(a.source_git_url), .check = check_source_url,
	.max = 2048},
    {"branch", field_text, OPTIONAL, .offset = AT(a.source_branch), .check = check_branch,
	.max = 255},
    {.key = NULL},
};
static const struct mapping SOURCE = {"source", SOURCE_FIELDS};

static const struct field PULL_REQUEST_FIELDS[] = {
    {"paths", field_texts, OPTIONAL, .offset = AT(a.triggers.paths), .check = check_glob, .min = 1,
	.max = 1024},
    {"label", field_choice, OPTIONAL, .offset = AT(a.triggers.label), .choices = LABEL_RULES},
    {"drafts", field_bool, OPTIONAL, .offset = AT(a.triggers.drafts)},
    {.key = NULL},
};
static const struct mapping PULL_REQUEST = {"triggers.pull_request", PULL_REQUEST_FIELDS};

static const struct field PUSH_FIELDS[] = {
    {"branches", field_texts, OPTIONAL, .offset = AT(a.triggers.branches), .check = check_branch,
	.min = 1, .max = 255},
    {"every", field_duration, OPTIONAL, .offset = AT(a.triggers.push_every_ms), .min = 0,
	.max = MINUTES(7 * 24 * 60)},
    {.key = NULL},
};
static const struct mapping PUSH = {"triggers.push", PUSH_FIELDS};

static const struct field TRIGGERS_FIELDS[] = {
    {"pull_request", field_pull_request, OPTIONAL, .map = &PULL_REQUEST},
    {"push", field_push, OPTIONAL, .map = &PUSH},
    {"schedule", field_texts, OPTIONAL, .offset = AT(a.triggers.schedules), .check = check_cron,
	.max = 200},
    {.key = NULL},
};
static const struct mapping TRIGGERS = {"triggers", TRIGGERS_FIELDS};

static const struct field DEADLINES_FIELDS[] = {
    {"acknowledge", field_duration, OPTIONAL, .offset = AT(a.deadlines.acknowledge_ms), .min = 100,
	.max = DAYS(30)},
    {"start", field_duration, OPTIONAL, .offset = AT(a.deadlines.start_ms), .min = 100,
	.max = DAYS(30)},
    {"finish", field_duration, OPTIONAL, .offset = AT(a.deadlines.finish_ms), .min = 100,
	.max = DAYS(30)},
    {.key = NULL},
};
static const struct mapping DEADLINES = {"deadlines", DEADLINES_FIELDS};

static const struct field EXPERIMENTS_FIELDS[] = {
    {"tests", field_integer, OPTIONAL, .offset = AT(a.experiments.tests), .min = 1,
	.max = EXPERIMENT_TESTS_MAX},
    {"per_head", field_integer, OPTIONAL, .offset = AT(a.experiments.per_head), .min = 1,
	.max = 20},
    {"share", field_share, OPTIONAL, .offset = AT(a.experiments.share_permille)},
    {.key = NULL},
};
static const struct mapping EXPERIMENTS = {"experiments", EXPERIMENTS_FIELDS};

static const struct field TESTS_FIELDS[] = {
    {"must_pass", field_texts, OPTIONAL, .offset = AT(a.must_pass), .check = check_test,
	.max = 300},
    {"skip", field_texts, OPTIONAL, .offset = AT(a.skip), .check = check_test, .max = 300},
    {.key = NULL},
};
static const struct mapping TESTS = {"tests", TESTS_FIELDS};

static const struct field ACCELERATOR_FIELDS[] = {
    {"name", field_text, REQUIRED, .offset = AT(a.name), .check = check_name,
	.max = NAME_MAX_BYTES},
    {"title", field_text, REQUIRED, .offset = AT(a.title), .check = check_line, .max = 100},
    {"vendor", field_text, OPTIONAL, .offset = AT(a.vendor), .check = check_line, .max = 100},
    {"level", field_choice, REQUIRED, .offset = AT(a.level), .choices = LEVELS},
    {"links", field_map, OPTIONAL, .map = &LINKS},
    {"source", field_map, OPTIONAL, .map = &SOURCE},
    {"oncall", field_texts, OPTIONAL, .offset = AT(a.oncall), .check = check_login, .max = 40},
    {"trust", field_choice, OPTIONAL, .offset = AT(a.trust), .choices = TRUSTS},
    {"visibility", field_choice, OPTIONAL, .offset = AT(a.visibility), .choices = VISIBILITIES},
    {"runners", field_runners, OPTIONAL, .map = &RUNNER_MAPPING},
    {"triggers", field_map, OPTIONAL, .map = &TRIGGERS},
    {"deadlines", field_map, OPTIONAL, .map = &DEADLINES},
    {"experiments", field_map, OPTIONAL, .map = &EXPERIMENTS},
    {"tests", field_map, OPTIONAL, .map = &TESTS},
    {"platform", field_platform, OPTIONAL, .offset = AT(a.platform), .map = &PLATFORM_MAPPING},
    {.key = NULL},
};
const struct mapping ACCELERATOR_MAPPING = {"", ACCELERATOR_FIELDS};

/* A trigger is a map, or true or false for "as usual" and "never". */
static void read_trigger(struct reader *r, const struct field *f, const struct node *v,
    struct accelerator_file *file, bool *is_on)
{
	if (v->kind == NODE_SCALAR) {
		field_bool(r, f, v, is_on);
		return;
	}
	*is_on = true;
	read_mapping(r, f->map, v, file);
}

static void field_pull_request(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct accelerator_file *file = target;

	read_trigger(r, f, v, file, &file->a.triggers.has_pull_request);
}

static void field_push(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct accelerator_file *file = target;

	read_trigger(r, f, v, file, &file->a.triggers.has_push);
}

/* "10%" or "2.5%" to 100 or 25. ERR_INVALID: another text, or more than 100%. */
static int permille_parse(const char *s, int *ret)
{
	size_t digits = strspn(s, "0123456789");
	const char *rest = s + digits;
	int n = 0;

	if (digits == 0 || digits > 3)
		return ERR_INVALID;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (s[i] - '0');
	n *= 10;
	if (*rest == '.') {
		if (rest[1] < '0' || rest[1] > '9')
			return ERR_INVALID;
		n += rest[1] - '0';
		rest += 2;
	}
	if (!str_eq(rest, "%") || n > 1000)
		return ERR_INVALID;
	*ret = n;
	return 0;
}

static void field_share(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	if (v->kind != NODE_SCALAR || permille_parse(v->text, target))
		refuse_kind(r, f, v, "a percentage from 0% to 100%, such as 10% or 2.5%");
}

void accelerator_set_defaults(struct accelerator *a)
{
	*a = (struct accelerator){
	    .oncall = strv_copy(NULL),
	    .trust = TRUST_CONTRIBUTORS,
	    .triggers = {.has_pull_request = true, .label = LABEL_OPTIONAL, .drafts = true},
	    .deadlines =
		{
		    /* acknowledge: what a runner's kind makes of 0, see model/accelerator.h */
		    .start_ms = MINUTES(120),
		    .finish_ms = MINUTES(360),
		},
	    .experiments = {.tests = 50, .per_head = 2, .share_permille = 100},
	    .must_pass = strv_copy(NULL),
	    .skip = strv_copy(NULL),
	};
}

static void check_tests(struct reader *r, const struct node *root, const struct accelerator *a)
{
	const struct node *tests = tree_get(root, "tests");
	char value[SHOWN_BYTES];

	for (char **pass = a->must_pass; *pass; pass++)
		for (char **skip = a->skip; *skip; skip++)
			if (str_eq(*pass, *skip))
				problem_add(r->problems, r->file, tests->line,
				    "%s is in tests.must_pass and in tests.skip",
				    shown(*pass, value));
}

static void note_reruns(struct reader *r, const struct node *root, const struct accelerator *a)
{
	const struct node *experiments = tree_get(root, "experiments");
	const struct node *runners = tree_get(root, "runners"), *reruns;
	bool has_any = false;

	for (size_t i = 0; i < a->n_runners; i++) {
		if (a->runners[i].reruns == RERUNS_NONE)
			continue;
		has_any = true;
		reruns = tree_get(runners->values[i], "reruns");
		if (a->level == LEVEL_1)
			problem_add(r->notes, r->file, reruns->line,
			    "reruns has no effect at level L1: experiments begin at L2");
	}
	if (experiments && !has_any)
		problem_add(r->notes, r->file, experiments->line,
		    "experiments has no effect: no runner has reruns: tests or reruns: whole");
}

void accelerator_file_read(struct reader *r, const struct node *root, struct accelerator_file *ret)
{
	const struct node *name = tree_get(root, "name");
	struct accelerator *a = &ret->a;

	*ret = (struct accelerator_file){0};
	accelerator_set_defaults(a);
	a->file = xstrdup(r->file);
	a->line = name ? name->line : root->line;
	read_mapping(r, &ACCELERATOR_MAPPING, root, ret);
	if (a->source_git_url && !a->source_branch)
		a->source_branch = xstrdup("main");
	for (char **login = a->oncall; *login; login++)
		if (**login == '@')
			memmove(*login, *login + 1, strlen(*login));
	check_tests(r, root, a);
	if (r->notes)
		note_reruns(r, root, a);
}

void accelerator_file_release(struct accelerator_file *f)
{
	for (size_t i = 0; f->secrets && i < f->a.n_runners; i++)
		free(f->secrets[i].path);
	free(f->secrets);
	accelerator_release(&f->a);
}
