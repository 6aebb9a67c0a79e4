#include "config/accelerator_file.h"

#include "config/platform_file.h"

#define AT(member) offsetof(struct accelerator_file, member)

/* A GitHub label has at most 50 characters, and "ciflow/crcr/NAME" is one. */
enum { NAME_MAX_BYTES = 38 };

#define RUNNER_AT(member) offsetof(struct runner_draft, member)

enum { RUNNERS_MAX = 100 };

struct runner_draft {
	struct runner runner;
	struct file_ref secret;
};

static const struct mapping RUNNER_GITHUB_MAP = MAPPING("runners.github",
    {"repository", field_text, REQUIRED, RUNNER_AT(runner.repository), check_repository, .max = 201},
    {"repository_id", field_integer64, OPTIONAL, .offset = RUNNER_AT(runner.repository_id), .min = 1, .max = INT64_MAX},
    {"repository_owner_id", field_integer64, OPTIONAL, .offset = RUNNER_AT(runner.repository_owner_id), .min = 1,
	.max = INT64_MAX},
    {"workflow", field_text, OPTIONAL, RUNNER_AT(runner.workflow), check_workflow, .max = 255});

static const struct mapping WEBHOOK =
    MAPPING("runners.webhook", {"url", field_text, REQUIRED, RUNNER_AT(runner.url), check_vendor_url, .max = 2048},
	{"secret", field_file, REQUIRED, RUNNER_AT(secret), check_secret_name, .max = 64});

static const struct mapping PULL =
    MAPPING("runners.pull", {"labels", field_texts, OPTIONAL, RUNNER_AT(runner.labels), check_line, .max = 100},
	{"max_parallel", field_integer, OPTIONAL, .offset = RUNNER_AT(runner.max_parallel), .min = 1, .max = 1000});

static const struct choice RERUNS[] = {
    {"none", RERUNS_NONE}, {"tests", RERUNS_TESTS}, {"whole", RERUNS_WHOLE}, {NULL, 0}};

static const struct mapping RUNNER_MAPPING =
    MAPPING("runners", {"name", field_text, REQUIRED, RUNNER_AT(runner.name), check_name, .max = 63},
	{"nightly_only", field_bool, OPTIONAL, .offset = RUNNER_AT(runner.is_nightly_only)},
	{"reruns", field_choice, OPTIONAL, .offset = RUNNER_AT(runner.reruns), .choices = RERUNS},
	{"github", field_map, OPTIONAL, .map = &RUNNER_GITHUB_MAP}, {"webhook", field_map, OPTIONAL, .map = &WEBHOOK},
	{"pull", field_map, OPTIONAL, .map = &PULL});

static void field_runners(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct accelerator_file *file = target;
	struct accelerator *a = &file->a;
	static const enum runner_kind kinds[] = {RUNNER_GITHUB, RUNNER_WEBHOOK, RUNNER_PULL};

	if (!expect_kind(r, f, v, NODE_LIST))
		return;
	if (v->n > RUNNERS_MAX) {
		refuse_at(r, v->line, "more than %d runners", RUNNERS_MAX);
		return;
	}
	a->runners = xcalloc(v->n, sizeof(*a->runners));
	file->secrets = xcalloc(v->n, sizeof(*file->secrets));
	for (size_t i = 0; i < v->n; i++) {
		struct runner_draft d = {.runner = {.labels = strv_copy(NULL), .max_parallel = 1}};
		int n_kinds = 0;

		read_mapping(r, f->map, v->values[i], &d);
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if (tree_get(v->values[i], runner_kind_name(kinds[k]))) {
				d.runner.kind = kinds[k];
				n_kinds++;
			}
		if (v->values[i]->kind == NODE_MAP && n_kinds != 1)
			refuse_at(r, v->values[i]->line, "a runner has one of github, webhook and pull, not %s",
			    n_kinds ? "several" : "none");
		/* Experiments are for pull requests, which a nightly_only runner does not test. */
		if (d.runner.is_nightly_only && d.runner.reruns != RERUNS_NONE)
			refuse_at(
			    r, v->values[i]->line, "a runner with nightly_only gets no experiments: remove reruns");
		for (size_t k = 0; d.runner.name && k < a->n_runners; k++)
			if (str_eq(a->runners[k].name, d.runner.name))
				refuse_at(r, v->values[i]->line, "two runners are called %s", QUOTED(d.runner.name));
		file->secrets[file->n_secrets++] = d.secret;
		a->runners[a->n_runners++] = d.runner;
	}
}

static const struct choice LEVELS[] = {{"L1", LEVEL_1}, {"L2", LEVEL_2}, {"L3", LEVEL_3}, {"L4", LEVEL_4}, {NULL, 0}};
const struct choice TRUSTS[] = {{"anyone", TRUST_ANYONE}, {"contributors", TRUST_CONTRIBUTORS},
    {"members", TRUST_MEMBERS}, {"approved", TRUST_APPROVED}, {"merged", TRUST_MERGED}, {NULL, 0}};
static const struct choice LABEL_RULES[] = {{"optional", LABEL_OPTIONAL}, {"required", LABEL_REQUIRED}, {NULL, 0}};

/* A trigger is a map; true means its defaults, and false turns it off. `target` is the flag of the trigger. */
static void field_trigger(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	if (v->kind == NODE_SCALAR) {
		field_bool(r, f, v, target);
		return;
	}
	*(bool *)target = true;
	read_mapping(r, f->map, v, (char *)target - f->offset);
}

/* int: "10%" or "2.5%" as 100 or 25. */
static void field_share(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	const char *s = v->kind == NODE_SCALAR ? v->text : "";
	size_t digits = strspn(s, "0123456789");
	const char *rest = s + digits;
	int permille = 0;
	bool is_right = digits > 0 && digits <= 3;

	for (size_t i = 0; is_right && i < digits; i++)
		permille = permille * 10 + (s[i] - '0');
	permille *= 10;
	if (is_right && *rest == '.') {
		is_right = rest[1] >= '0' && rest[1] <= '9';
		permille += is_right ? rest[1] - '0' : 0;
		rest += is_right ? 2 : 0;
	}
	if (is_right && str_eq(rest, "%") && permille <= 1000)
		*(int *)target = permille;
	else
		refuse_kind(r, f, v, "a percentage from 0% to 100%, such as 10% or 2.5%");
}

static const struct mapping LINKS =
    MAPPING("links", {"docs", field_text, OPTIONAL, AT(a.docs_url), check_link_url, .max = 1024},
	{"help", field_text, OPTIONAL, AT(a.help_url), check_link_url, .max = 1024});

static const struct mapping SOURCE =
    MAPPING("source", {"git_url", field_text, REQUIRED, AT(a.source_git_url), check_source_url, .max = 2048},
	{"branch", field_text, OPTIONAL, AT(a.source_branch), check_branch, .max = 255});

static const struct mapping PULL_REQUEST = MAPPING("triggers.pull_request",
    {"paths", field_texts, OPTIONAL, AT(a.triggers.paths), check_glob, .min = 1, .max = 1024},
    {"label", field_choice, OPTIONAL, .offset = AT(a.triggers.label), .choices = LABEL_RULES},
    {"drafts", field_bool, OPTIONAL, .offset = AT(a.triggers.drafts)});

static const struct mapping PUSH = MAPPING("triggers.push",
    {"branches", field_texts, OPTIONAL, AT(a.triggers.branches), check_branch, .min = 1, .max = 255},
    {"every", field_duration, OPTIONAL, .offset = AT(a.triggers.push_every_ms), .min = 0, .max = MINUTES(7 * 24 * 60)});

static const struct mapping TRIGGERS = MAPPING("triggers",
    {"pull_request", field_trigger, OPTIONAL, .offset = AT(a.triggers.has_pull_request), .map = &PULL_REQUEST},
    {"push", field_trigger, OPTIONAL, .offset = AT(a.triggers.has_push), .map = &PUSH},
    {"schedule", field_texts, OPTIONAL, AT(a.triggers.schedules), check_cron, .max = 200});

static const struct mapping DEADLINES = MAPPING("deadlines",
    {"acknowledge", field_duration, OPTIONAL, .offset = AT(a.deadlines.acknowledge_ms), .min = 100, .max = DAYS(30)},
    {"start", field_duration, OPTIONAL, .offset = AT(a.deadlines.start_ms), .min = 100, .max = DAYS(30)},
    {"finish", field_duration, OPTIONAL, .offset = AT(a.deadlines.finish_ms), .min = 100, .max = DAYS(30)});

static const struct mapping EXPERIMENTS = MAPPING("experiments",
    {"tests", field_integer, OPTIONAL, .offset = AT(a.experiments.tests), .min = 1, .max = EXPERIMENT_TESTS_MAX},
    {"per_head", field_integer, OPTIONAL, .offset = AT(a.experiments.per_head), .min = 1, .max = 20},
    {"share", field_share, OPTIONAL, .offset = AT(a.experiments.share_permille)});

static const struct mapping TESTS =
    MAPPING("tests", {"must_pass", field_texts, OPTIONAL, AT(a.must_pass), check_test, .max = 300},
	{"skip", field_texts, OPTIONAL, AT(a.skip), check_test, .max = 300});

const struct mapping ACCELERATOR_MAPPING =
    MAPPING("", {"name", field_text, REQUIRED, AT(a.name), check_name, .max = NAME_MAX_BYTES},
	{"title", field_text, REQUIRED, AT(a.title), check_line, .max = 100},
	{"vendor", field_text, OPTIONAL, AT(a.vendor), check_line, .max = 100},
	{"level", field_choice, REQUIRED, .offset = AT(a.level), .choices = LEVELS},
	{"links", field_map, OPTIONAL, .map = &LINKS}, {"source", field_map, OPTIONAL, .map = &SOURCE},
	{"oncall", field_texts, OPTIONAL, AT(a.oncall), check_login, .max = 40},
	{"trust", field_choice, OPTIONAL, .offset = AT(a.trust), .choices = TRUSTS},
	{"visibility", field_choice, OPTIONAL, .offset = AT(a.visibility), .choices = VISIBILITIES},
	{"runners", field_runners, OPTIONAL, .map = &RUNNER_MAPPING},
	{"triggers", field_map, OPTIONAL, .map = &TRIGGERS}, {"deadlines", field_map, OPTIONAL, .map = &DEADLINES},
	{"experiments", field_map, OPTIONAL, .map = &EXPERIMENTS}, {"tests", field_map, OPTIONAL, .map = &TESTS},
	{"platform", field_platform, OPTIONAL, .offset = AT(a.platform), .map = &PLATFORM_MAPPING});

void accelerator_set_defaults(struct accelerator *a)
{
	*a = (struct accelerator){
	    .oncall = strv_copy(NULL),
	    .trust = TRUST_CONTRIBUTORS,
	    .triggers = {.has_pull_request = true, .label = LABEL_OPTIONAL, .drafts = true},
	    .deadlines =
		{
		    /* acknowledge 0: the runner's kind decides, see model/accelerator.h */
		    .start_ms = MINUTES(120),
		    .finish_ms = MINUTES(360),
		},
	    .experiments = {.tests = 50, .per_head = 2, .share_permille = 100},
	    .must_pass = strv_copy(NULL),
	    .skip = strv_copy(NULL),
	};
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
	const struct node *tests = tree_get(root, "tests");
	for (char **pass = a->must_pass; *pass; pass++)
		for (char **skip = a->skip; *skip; skip++)
			if (str_eq(*pass, *skip))
				refuse_at(r, tests->line, "%s is in tests.must_pass and in tests.skip", QUOTED(*pass));
	if (r->notes) {
		const struct node *experiments = tree_get(root, "experiments");
		const struct node *runners = tree_get(root, "runners");
		const char *why = NULL;
		bool has_any = false;

		if (a->level == LEVEL_1)
			why = " at level L1: experiments begin at L2";
		else if (a->trust == TRUST_MERGED)
			why = " with trust: merged: experiments are for pull requests";
		else if (!a->triggers.has_pull_request)
			why = " without triggers.pull_request: experiments are for pull requests";
		else if (a->experiments.share_permille == 0)
			why = ": experiments.share is 0%";

		for (size_t i = 0; i < a->n_runners; i++) {
			if (a->runners[i].reruns == RERUNS_NONE)
				continue;
			has_any = true;
			const struct node *reruns = tree_get(runners->values[i], "reruns");
			if (why)
				problem_add(r->notes, r->file, reruns->line, "reruns has no effect%s", why);
		}
		if (experiments && !has_any)
			problem_add(r->notes, r->file, experiments->line,
			    "experiments has no effect: no runner has reruns: tests or reruns: whole");
	}
}

void accelerator_file_release(struct accelerator_file *f)
{
	for (size_t i = 0; i < f->n_secrets; i++)
		free(f->secrets[i].path);
	free(f->secrets);
	accelerator_release(&f->a);
}
