#include "publish/publish_internal.h"

enum {
	LABEL_BYTES = 256,
	PART_CHARS = 120, /* of a workflow's or a job's name */
	NAME_MAX_BYTES = 2048,
};

static void planned_check_release(struct planned_check *w)
{
	FREE_ALL(w->head_sha, w->name, w->external_id, w->accelerator, w->details_url);
	check_output_release(&w->output);
}

void check_plan_release(struct check_plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		planned_check_release(&p->list[i]);
	FREE_AND_NULL(p->list);
	p->n = 0;
}

/* ---- the accelerators with check runs ---- */

static bool has_check(const struct accelerator_view *a, char **labels)
{
	char label[LABEL_BYTES];

	if (a->is_gone)
		return false;
	if (a->level != LEVEL_3)
		return a->level == LEVEL_4;
	snprintf(label, sizeof(label), "ciflow/crcr/%s", a->name);
	return strv_contains((const char *const *)labels, label);
}

/* Whether a dispatch ended without being called off, and a job began. */
static bool has_something_to_say(const struct change_view *v)
{
	bool has_jobs = false, has_ended = false;

	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct accelerator_view *a = &v->accelerators[i];

		has_jobs |= a->level >= LEVEL_2 && a->n_jobs > 0;
		for (size_t j = 0; a->level >= LEVEL_2 && j < a->n_dispatches; j++)
			has_ended |= a->dispatches[j].is_current && (a->dispatches[j].state == DISPATCH_DONE ||
									a->dispatches[j].state == DISPATCH_FAILED ||
									a->dispatches[j].state == DISPATCH_EXPIRED);
	}
	return has_jobs && has_ended;
}

/* ---- names ---- */

static bool is_name_taken(const struct check_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->list[i].name, name))
			return true;
	return false;
}

static const struct stored_check *find_check(const struct list_checks *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].is_of_head && str_eq(l->list[i].name, name))
			return &l->list[i];
	return NULL;
}

/* Accelerators that share a repository, and runners of one accelerator, may have jobs of one name: the second one gets its
 * accelerator and runner added. */
static char *own_name_of(const struct check_plan *p, const struct list_checks *on_record,
    const struct accelerator_view *a, const struct job_view *job)
{
	const char *repository = NULL;
	struct buf out = BUF_INIT(NAME_MAX_BYTES);

	for (size_t i = 0; i < a->n_dispatches && !repository; i++)
		if (str_eq(a->dispatches[i].id, job->dispatch_id) && str_eq(a->dispatches[i].runner, job->runner))
			repository = a->dispatches[i].repository;
	/* CRCR's name, or ours for a runner that is no repository. */
	buf_appendf(&out, "%s/%s/", repository ? "crcr" : "outpost", repository ? repository : a->name);
	escape_line(&out, job->workflow, PART_CHARS);
	buf_append_char(&out, '/');
	escape_line(&out, job->name, PART_CHARS);
	char *name = buf_detach(&out);
	const struct stored_check *k = find_check(on_record, name);

	if (!is_name_taken(p, name) && (!k || str_eq(k->accelerator, a->name)))
		return name;
	char *longer = xasprintf("%s (%s, %s)", name, a->name, job->runner);
	free(name);
	return longer;
}

/* ---- the check runs of the view ---- */

/* Owns: takes over w's memory. k: the one on record, or NULL. */
static void add_check(struct check_plan *p, const struct stored_check *k, struct planned_check *w)
{
	struct buf all = BUF_INIT(1024 * 1024);
	const struct check_output *o = &w->output;
	const char *const texts[] = {w->external_id, w->details_url, o->conclusion, o->title, o->summary, o->text};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		buf_append_str(&all, texts[i] ? texts[i] : "");
		buf_append_char(&all, '\0');
	}
	for (size_t i = 0; i < o->n_annotations; i++) {
		const struct check_annotation *a = &o->annotations[i];

		buf_appendf(&all, "%s:%lld %s %s %s\n", a->path, (long long)a->line, a->level, a->title, a->message);
	}
	sha256(buf_str(&all), all.len, w->digest);
	buf_release(&all);
	if (k) {
		w->check_id = k->check_id;
		w->is_recreated = k->is_completed && (!w->output.conclusion || k->n_annotations > 0);
	}
	*ARRAY_PUSH(p->list, p->n) = *w;
}

static void add_job(struct check_plan *p, const struct change_view *v, size_t accelerator, size_t job,
    const struct list_checks *on_record, const struct check_options *o)
{
	const struct accelerator_view *a = &v->accelerators[accelerator];
	const struct job_view *j = &a->jobs[job];
	struct planned_check w = {.head_sha = xstrdup(v->head_sha),
	    .name = own_name_of(p, on_record, a, j),
	    .external_id = xasprintf("%s:%lld", j->run_id, (long long)on_record->named_number),
	    .accelerator = xstrdup(a->name),
	    .details_url = xasprintf("%s/jobs/%lld", o->public_url, (long long)j->id),
	    .job_id = j->id};

	check_output_of_job(v, accelerator, job, o, &w.output);
	add_check(p, find_check(on_record, w.name), &w);
}

static void add_verdict(
    struct check_plan *p, const struct table *t, const struct list_checks *on_record, const struct check_options *o)
{
	long long number = on_record->named_number;
	struct planned_check w = {.head_sha = xstrdup(t->view->head_sha),
	    .name = xstrdup(CHECK_VERDICT_NAME),
	    .external_id = xasprintf("verdict:%lld", number),
	    .accelerator = xstrdup(""),
	    .details_url = xasprintf("%s/pulls/%lld", o->public_url, number)};

	check_output_of_verdict(t, o, &w.output);
	add_check(p, find_check(on_record, w.name), &w);
}

/* ---- check runs to close ---- */

static bool has_lost_its_label(const struct change_view *v, const char *name, char **labels)
{
	for (size_t i = 0; i < v->n_accelerators; i++)
		if (str_eq(v->accelerators[i].name, name))
			return v->accelerators[i].level == LEVEL_3 && !v->accelerators[i].is_gone &&
			       !has_check(&v->accelerators[i], labels);
	return false;
}

/* Ends a check run. On the present head, `neutral` does not prevent a merge. */
static void add_closed(struct check_plan *p, const struct change_view *v, const struct stored_check *k, char **labels)
{
	struct planned_check w = {.head_sha = xstrdup(k->head_sha),
	    .name = xstrdup(k->name),
	    .accelerator = xstrdup(k->accelerator),
	    .job_id = k->job_id};

	if (!k->is_of_head)
		check_output_of_closed(
		    "cancelled", "Superseded", "A newer commit took the place of this one.", &w.output);
	else if (has_lost_its_label(v, k->accelerator, labels))
		check_output_of_closed("neutral", "Not asked for any more",
		    "The label that asked for this check run was removed.", &w.output);
	else
		check_output_of_closed("neutral", "Superseded",
		    "This job does not count any more: it was started again, or its accelerator "
		    "left or has no check runs at its level.",
		    &w.output);
	add_check(p, k, &w);
}

/* CRCR's temporary demotion moves an entry of the allowlist from L3 to L2, under another name: it gets no
 * new check run, and the one that has begun still says how its job ends. */
static bool is_to_be_finished(const struct check_plan *p, const struct list_checks *on_record,
    const struct accelerator_view *a, const struct job_view *job)
{
	char *name = own_name_of(p, on_record, a, job);
	const struct stored_check *k = a->level == LEVEL_2 || a->is_gone ? find_check(on_record, name) : NULL;

	free(name);
	return k && !k->is_completed && str_eq(k->accelerator, a->name);
}

/* ---- the differences ---- */

static bool is_on_record(const struct planned_check *w, const struct list_checks *on_record)
{
	for (size_t i = 0; i < on_record->n; i++)
		if (on_record->list[i].check_id == w->check_id)
			return memcmp(on_record->list[i].digest, w->digest, SHA256_BYTES) == 0;
	return false;
}

/* The verdict comes last: a program that waits for it finds the others written. */
static int urgency(const struct planned_check *w)
{
	if (!w->job_id)
		return 3;
	if (str_eq(w->output.conclusion, "failure"))
		return 0;
	return w->output.conclusion ? 1 : 2;
}

static int by_urgency(const void *x, const void *y)
{
	const struct planned_check *a = x, *b = y;
	int order = urgency(a) - urgency(b);

	return order ? order : strcmp(a->name, b->name);
}

void check_plan_make(const struct change_view *v, const struct list_checks *on_record, const struct check_options *o,
    struct check_plan *ret)
{
	struct table t;

	*ret = (struct check_plan){.n = 0};
	if (v->kind != CHANGE_PULL_REQUEST || !on_record->named_number || !is_sha1(v->head_sha))
		return;
	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct accelerator_view *a = &v->accelerators[i];

		for (size_t j = 0; j < a->n_jobs; j++)
			if (has_check(a, on_record->labels) || is_to_be_finished(ret, on_record, a, &a->jobs[j]))
				add_job(ret, v, i, j, on_record, o);
	}
	/* A verdict that was written is kept up to date, also after a retest was called off. */
	table_init(&t, v);
	if (table_is_complete(&t) && (find_check(on_record, CHECK_VERDICT_NAME) || has_something_to_say(v)))
		add_verdict(ret, &t, on_record, o);
	table_release(&t);
	size_t n_planned = ret->n, n = 0;

	for (size_t i = 0; i < on_record->n; i++) {
		const struct stored_check *k = &on_record->list[i];
		bool is_still_planned = false;

		for (size_t j = 0; k->is_of_head && j < n_planned; j++)
			is_still_planned |= str_eq(ret->list[j].name, k->name);
		if (!k->is_completed && !is_still_planned)
			add_closed(ret, v, k, on_record->labels);
	}

	for (size_t i = 0; i < ret->n; i++) {
		if (is_on_record(&ret->list[i], on_record))
			planned_check_release(&ret->list[i]);
		else
			ret->list[n++] = ret->list[i];
	}
	ret->n = n;
	if (n)
		qsort(ret->list, n, sizeof(*ret->list), by_urgency);
}
