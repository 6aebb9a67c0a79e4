/* One claimed row of kind CHECKS: reads the change and what is on record, plans the differences and
 * writes them one after the other, each recorded before the next begins.
 *
 * Never here: a create that was not preceded by a look at what the commit bears. What a lost answer
 * or a crash left unrecorded is found by its name and external_id and taken up where it stopped,
 * down to the annotations that had arrived; so no job ever has two. */

#include "publish/publish_internal.h"
#include "views/change.h"

enum {
	/* A row gives way to others after so many, and looks anew at what there is to say. */
	CHECKS_A_TURN = 10,
	REFUSED_MS = 10 * 60 * 1000,
};

struct checking {
	struct claimed claimed;
	struct get_change change;
	struct list_checks on_record;
	struct check_plan plan;
	struct github_call call;
	struct github_check_list listed;
	struct doubt_check doubt;
	struct put_check put;
	int64_t change_id;
	char head_sha[41];
	size_t at; /* in plan.list: the one in hand */
	int64_t check_id;
	size_t n_annotations; /* that it bears */
	int n_written;
	bool is_doubted;                                    /* what it bears, on record */
	bool has_listed;                                    /* `listed` is what the head bears */
	char refusal[sizeof(((struct error *)NULL)->text)]; /* of one that GitHub does not take */
};

static void next(struct checking *c);
static void write_one(struct checking *c);

static struct wanted_check *in_hand(struct checking *c) { return &c->plan.list[c->at]; }

/* ---- after GitHub's answer ---- */

static void fail_checks(struct checking *c, const struct github_result *r)
{
	struct publisher *p = c->claimed.p;

	/* The App may not write check runs, as far as GitHub says now: asking for each pull request
	 * would only spend its requests. */
	if ((r->err == ERR_DENIED && r->status == 403) || (r->is_final && !r->was_sent)) {
		int64_t now_ms = clock_mono_ms();

		if (now_ms >= p->checks_refused_until_mono_ms)
			log_event(LOG_ERROR, "checks_refused", LOG_S("repository", c->claimed.effect.row.target),
			    LOG_I("pr", c->claimed.effect.row.number), LOG_S("error", r->why.text));
		p->checks_refused_until_mono_ms = now_ms + REFUSED_MS;
		p->counters.n_dead++;
		claimed_end(&c->claimed, OUTBOX_DEAD, 0, r->why.text);
		return;
	}
	claimed_fail(&c->claimed, r);
}

/* What an earlier claim left uncertain may be one of those that are still to come. */
static void continue_checks(struct checking *c)
{
	c->claimed.effect.is_uncertain = c->claimed.effect.row.is_uncertain;
	c->at++;
	next(c);
}

static void on_recorded(struct store_op *op)
{
	struct checking *c = CONTAINER_OF(op, struct checking, put.op);

	if (op->err) {
		claimed_retry(&c->claimed, &op->why, 0);
		return;
	}
	c->n_written++;
	continue_checks(c);
}

static void on_written(struct github_call *call)
{
	struct checking *c = call->owner;
	const struct wanted_check *w = in_hand(c);

	c->claimed.on_wire = NULL;
	if (call->result.err) {
		if (call->result.status != 422) {
			fail_checks(c, &call->result);
			return;
		}
		/* GitHub refuses this check run. Write the others anyway. */
		log_event(LOG_ERROR, "check_refused", LOG_S("repository", c->claimed.effect.row.target),
		    LOG_I("pr", c->claimed.effect.row.number), LOG_S("check", in_hand(c)->name),
		    LOG_S("error", call->result.why.text));
		snprintf(c->refusal, sizeof(c->refusal), "%s", call->result.why.text);
		continue_checks(c);
		return;
	}
	if (!c->check_id) {
		c->check_id = json_get_int(call->answer, "id", 0);
		c->claimed.p->counters.n_checks_created++;
	}
	size_t n_sent = w->output.n_annotations - c->n_annotations;
	c->n_annotations += n_sent < GITHUB_ANNOTATIONS_MAX ? n_sent : GITHUB_ANNOTATIONS_MAX;
	c->claimed.p->counters.n_checks_written++;
	if (c->n_annotations < w->output.n_annotations && c->check_id) {
		write_one(c);
		return;
	}
	log_event(LOG_INFO, "check_written", LOG_S("repository", c->claimed.effect.row.target),
	    LOG_I("pr", c->claimed.effect.row.number), LOG_S("check", w->name), LOG_I("id", c->check_id),
	    LOG_S("conclusion", w->output.conclusion ? w->output.conclusion : "in_progress"));
	const struct wanted_check *written = in_hand(c);

	c->put = (struct put_check){.op = {.done = on_recorded},
	    .repository = c->claimed.effect.row.target,
	    .head_sha = written->head_sha,
	    .name = written->name,
	    .accelerator = written->accelerator,
	    .check_id = c->check_id,
	    .job_id = written->job_id,
	    .now_ms = clock_wall_ms(),
	    .n_annotations = (int)c->n_annotations,
	    .is_completed = written->output.conclusion != NULL};
	memcpy(c->put.digest, written->digest, SHA256_BYTES);
	if (store_put_check(c->claimed.p->deps.store, &c->put))
		claimed_end_busy(&c->claimed);
}

/* ---- one write ---- */

static void send(struct checking *c)
{
	const struct wanted_check *w = in_hand(c);
	const struct check_output *out = &w->output;
	struct github_annotation annotations[GITHUB_ANNOTATIONS_MAX];
	struct github_check check = {.name = w->name,
	    .head_sha = w->head_sha,
	    .external_id = w->external_id,
	    .details_url = w->details_url,
	    .conclusion = out->conclusion,
	    .title = out->title,
	    .summary = out->summary,
	    .text = out->text,
	    .annotations = annotations};

	for (size_t i = c->n_annotations; i < out->n_annotations && check.n_annotations < GITHUB_ANNOTATIONS_MAX; i++) {
		const struct check_annotation *a = &out->annotations[i];

		annotations[check.n_annotations++] = (struct github_annotation){
		    .path = a->path, .line = a->line, .level = a->level, .title = a->title, .message = a->message};
	}
	if (!claimed_begin_call(&c->claimed, &c->call, on_written, c))
		return;
	c->claimed.effect.is_uncertain = true;
	if (c->check_id)
		github_check_update(
		    c->claimed.p->deps.github, &c->call, c->claimed.effect.row.target, c->check_id, &check);
	else
		github_check_create(c->claimed.p->deps.github, &c->call, c->claimed.effect.row.target, &check);
}

static void on_doubted(struct store_op *op)
{
	struct checking *c = CONTAINER_OF(op, struct checking, doubt.op);

	if (op->err) {
		claimed_retry(&c->claimed, &op->why, 0);
		return;
	}
	c->is_doubted = true;
	send(c);
}

static void write_one(struct checking *c)
{
	const struct wanted_check *w = in_hand(c);

	if (!effect_may_write(&c->claimed.effect, WRITE_CHECK))
		return;
	if (!w->check_id || c->is_doubted) { /* nothing on record that could be wrong */
		send(c);
		return;
	}
	c->doubt = (struct doubt_check){.op = {.done = on_doubted},
	    .repository = c->claimed.effect.row.target,
	    .head_sha = w->head_sha,
	    .name = w->name};
	if (store_doubt_check(c->claimed.p->deps.store, &c->doubt))
		claimed_end_busy(&c->claimed);
}

static const struct github_listed_check *find_listed(const struct checking *c, const char *name)
{
	for (size_t i = 0; i < c->listed.n; i++)
		if (str_eq(c->listed.list[i].name, name))
			return &c->listed.list[i];
	return NULL;
}

static bool is_new(const struct wanted_check *w) { return !w->check_id || w->is_anew; }

static void on_checks_listed(struct github_call *call)
{
	struct checking *c = call->owner;

	c->claimed.on_wire = NULL;
	if (call->result.err) {
		fail_checks(c, &call->result);
		return;
	}
	c->has_listed = true;
	next(c);
}

static void next(struct checking *c)
{
	bool is_last = c->at == c->plan.n;

	if (is_last || c->n_written >= CHECKS_A_TURN) {
		if (is_last && c->n_written)
			c->claimed.effect.is_uncertain = false;
		if (is_last && c->refusal[0])
			claimed_end(&c->claimed, OUTBOX_DEAD, 0, c->refusal);
		else if (is_last)
			claimed_end(&c->claimed, OUTBOX_OK, 0, NULL);
		else
			claimed_end(&c->claimed, OUTBOX_AGAIN, clock_wall_ms(), NULL);
		return;
	}
	if (!c->has_listed && (is_new(in_hand(c)) || c->claimed.effect.is_uncertain)) {
		if (claimed_begin_call(&c->claimed, &c->listed.call, on_checks_listed, c))
			github_checks_list(
			    c->claimed.p->deps.github, &c->listed, c->claimed.effect.row.target, c->head_sha);
		return;
	}
	/* Which one to write, and from which annotation on. */
	const struct wanted_check *w = in_hand(c);
	const struct github_listed_check *found = find_listed(c, w->name);

	c->is_doubted = false;
	c->check_id = is_new(w) ? 0 : w->check_id;
	c->n_annotations = 0;
	if (found && w->external_id && found->id != w->check_id && str_eq(found->external_id, w->external_id))
		c->check_id = found->id; /* ours, of which no answer came */
	if (found && found->id == c->check_id)
		c->n_annotations = (size_t)found->n_annotations;
	if (c->n_annotations > w->output.n_annotations && w->external_id) { /* none goes away */
		c->check_id = 0;
		c->n_annotations = 0;
	}
	write_one(c);
}

/* ---- what there is to say ---- */

static void plan(struct checking *c)
{
	struct publisher *p = c->claimed.p;

	check_plan_make(c->change.view, &c->on_record,
	    &(struct check_options){.public_url = c->claimed.config->public_url,
		.bot = claimed_app_name(&c->claimed),
		.l3_may_fail = c->claimed.config->checks_l3_may_fail},
	    &c->plan);
	snprintf(c->head_sha, sizeof(c->head_sha), "%s", c->change.view->head_sha);
	change_view_free(c->change.view); /* it may be large, and GitHub slow */
	c->change.view = NULL;
	if (c->plan.n && clock_mono_ms() < p->checks_refused_until_mono_ms)
		claimed_end(&c->claimed, OUTBOX_DEAD, 0, "the App may not write check runs");
	else
		next(c);
}

static void on_checks_app(struct github_call *call)
{
	struct checking *c = call->owner;

	c->claimed.on_wire = NULL;
	plan(c); /* without the App's name when GitHub does not say it */
}

static void on_record_read(struct store_query *q)
{
	struct checking *c = CONTAINER_OF(q, struct checking, on_record.q);

	if (q->err)
		claimed_retry(&c->claimed, &q->why, 0);
	else if (github_app_slug(c->claimed.p->deps.github))
		plan(c);
	else if (claimed_begin_call(&c->claimed, &c->call, on_checks_app, c))
		github_app_get(c->claimed.p->deps.github, &c->call);
}

/* Two PRs with one head share its check runs: one of them at a time. */
static bool is_shared_now(const struct checking *c)
{
	const struct engine *n = c->claimed.effect.engine;

	for (struct effect *e = engine_next(n, NULL); e; e = engine_next(n, e)) {
		const struct checking *other = CONTAINER_OF(e, struct checking, claimed.effect);

		if (e->row.kind == OUTBOX_CHECKS && other != c && other->change_id == c->change_id)
			return true;
	}
	return false;
}

static void on_checked_change(struct store_query *q)
{
	struct checking *c = CONTAINER_OF(q, struct checking, change.q);

	if (q->err == ERR_NOT_FOUND) {
		claimed_end(&c->claimed, OUTBOX_OK, 0, NULL);
		return;
	}
	if (q->err) {
		claimed_retry(&c->claimed, &q->why, 0);
		return;
	}
	c->change_id = c->change.view->change_id;
	c->on_record = (struct list_checks){.q = {.done = on_record_read},
	    .repository = c->claimed.effect.row.target,
	    .number = c->claimed.effect.row.number};
	if (c->change.view->is_being_attributed || is_shared_now(c) ||
	    store_list_checks(c->claimed.p->deps.store, &c->on_record)) {
		c->change_id = 0;
		claimed_end_busy(&c->claimed);
	}
}

static void release_checks(struct effect *e)
{
	struct checking *c = CONTAINER_OF(e, struct checking, claimed.effect);

	github_call_release(&c->call);
	github_check_list_release(&c->listed);
	list_checks_release(&c->on_record);
	check_plan_release(&c->plan);
	change_view_free(c->change.view);
	claimed_release(&c->claimed);
}

static void begin_checks(struct effect *e)
{
	struct checking *c = CONTAINER_OF(e, struct checking, claimed.effect);

	claimed_begin(&c->claimed, "checks");
	if (!c->claimed.config->checks_enabled) {
		claimed_end(&c->claimed, OUTBOX_OK, 0, NULL);
		return;
	}
	c->change = (struct get_change){.q = {.done = on_checked_change},
	    .now_ms = clock_wall_ms(),
	    .repository = c->claimed.effect.row.target,
	    .number = c->claimed.effect.row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(c->claimed.p->deps.store, &c->change))
		claimed_end_busy(&c->claimed);
}

const struct effect_kind checks_kind = {.kind = OUTBOX_CHECKS,
    .lane = CHECKS_LANE,
    .bytes = sizeof(struct checking),
    .begin = begin_checks,
    .cancel = claimed_cancel,
    .release = release_checks};
