/* One claimed row of kind CHECKS: reads the change and what is on record, plans the differences and writes them one after
 * the other. Each one is recorded before the next begins.
 *
 * Never here: a create without a look at the check runs that the commit has. If a lost answer or a crash left a check run
 * unrecorded, the look finds it by its name and external_id, and the work goes on there, down to the annotations that
 * had arrived. So no job ever has two check runs. */

#include "publish/publish_internal.h"

enum {
	/* After so many writes the row gives way to others, and reads the change again. */
	CHECKS_A_TURN = 10,
	REFUSED_MS = 10 * 60 * 1000,
};

struct checking {
	struct claimed claimed;
	struct list_checks on_record;
	struct check_plan plan;
	struct github_check_list listed;
	struct doubt_check doubt;
	struct put_check put;
	int64_t change_id;
	char head_sha[41];
	size_t at; /* in plan.list: the current one */
	int64_t check_id;
	size_t n_annotations; /* that it has at GitHub */
	int n_written;
	bool is_doubted;                                    /* the record says that GitHub may have another content */
	bool has_listed;                                    /* `listed` is what the head has */
	char refusal[sizeof(((struct error *)NULL)->text)]; /* of a check run that GitHub refused */
};

static void write_next_check(struct checking *c);
static void write_one_check(struct checking *c);

static struct planned_check *current_check(struct checking *c) { return &c->plan.list[c->at]; }

/* ---- after GitHub's answer ---- */

static void fail_checks(struct checking *c, const struct github_result *r)
{
	struct publisher *p = c->claimed.p;

	/* GitHub says that the App may not write check runs. Trying it for each pull request would only spend requests. */
	if ((r->err == ERR_DENIED && r->status == 403) || (r->is_final && !r->was_sent)) {
		int64_t now_ms = clock_mono_ms();

		if (now_ms >= p->checks_refused_until_mono_ms)
			log_event(LOG_ERROR, "checks_refused", LOG_S("repository", c->claimed.repository),
			    LOG_I("pr", c->claimed.number), LOG_S("error", r->why.text));
		p->checks_refused_until_mono_ms = now_ms + REFUSED_MS;
		p->counters.n_dead++;
		claimed_end(&c->claimed, OUTBOX_DEAD, 0, r->why.text);
		return;
	}
	claimed_fail(&c->claimed, r);
}

/* A write that an earlier claim left uncertain may be one of the next ones. */
static void continue_checks(struct checking *c)
{
	c->claimed.effect.is_uncertain = c->claimed.effect.row.is_uncertain;
	c->at++;
	write_next_check(c);
}

static void on_check_recorded(struct store_op *op)
{
	struct checking *c = CONTAINER_OF(op, struct checking, put.op);

	if (!claimed_is_stored(&c->claimed, op->err, &op->why))
		return;
	c->n_written++;
	continue_checks(c);
}

static void on_check_written(struct claimed *claimed, struct github_call *call)
{
	struct checking *c = CONTAINER_OF(claimed, struct checking, claimed);
	const struct planned_check *w = current_check(c);

	if (call->result.err && call->result.status != 422) {
		fail_checks(c, &call->result);
		return;
	}
	if (call->result.err) { /* GitHub refuses this check run. Write the others anyway. */
		log_event(LOG_ERROR, "check_refused", LOG_S("repository", claimed->repository),
		    LOG_I("pr", claimed->number), LOG_S("check", w->name), LOG_S("error", call->result.why.text));
		snprintf(c->refusal, sizeof(c->refusal), "%s", call->result.why.text);
		continue_checks(c);
		return;
	}
	if (!c->check_id) {
		c->check_id = json_get_int(call->answer, "id", 0);
		claimed->p->counters.n_checks_created++;
	}
	size_t n_sent = w->output.n_annotations - c->n_annotations;
	c->n_annotations += n_sent < GITHUB_ANNOTATIONS_MAX ? n_sent : GITHUB_ANNOTATIONS_MAX;
	claimed->p->counters.n_checks_written++;
	if (c->n_annotations < w->output.n_annotations && c->check_id) {
		write_one_check(c);
		return;
	}
	log_event(LOG_INFO, "check_written", LOG_S("repository", claimed->repository), LOG_I("pr", claimed->number),
	    LOG_S("check", w->name), LOG_I("id", c->check_id),
	    LOG_S("conclusion", w->output.conclusion ? w->output.conclusion : "in_progress"));
	c->put = (struct put_check){.op = {.done = on_check_recorded},
	    .outbox_id = claimed->effect.row.id,
	    .epoch = claimed->effect.row.epoch,
	    .repository = claimed->repository,
	    .head_sha = w->head_sha,
	    .name = w->name,
	    .accelerator = w->accelerator,
	    .check_id = c->check_id,
	    .job_id = w->job_id,
	    .now_ms = clock_wall_ms(),
	    .n_annotations = (int)c->n_annotations,
	    .is_completed = w->output.conclusion != NULL};
	memcpy(c->put.digest, w->digest, SHA256_BYTES);
	if (store_put_check(claimed->store, &c->put))
		claimed_end_busy(claimed);
}

/* ---- one write ---- */

static void send_check(struct checking *c)
{
	const struct planned_check *w = current_check(c);
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
	if (!claimed_begin_call(&c->claimed, &c->claimed.call, on_check_written))
		return;
	c->claimed.effect.is_uncertain = true;
	if (c->check_id)
		github_check_update(c->claimed.github, &c->claimed.call, c->claimed.repository, c->check_id, &check);
	else
		github_check_create(c->claimed.github, &c->claimed.call, c->claimed.repository, &check);
}

static void on_check_doubted(struct store_op *op)
{
	struct checking *c = CONTAINER_OF(op, struct checking, doubt.op);

	if (!claimed_is_stored(&c->claimed, op->err, &op->why))
		return;
	c->is_doubted = true;
	send_check(c);
}

static void write_one_check(struct checking *c)
{
	const struct planned_check *w = current_check(c);

	if (!effect_may_write(&c->claimed.effect, WRITE_CHECK))
		return;
	if (!w->check_id || c->is_doubted) { /* no record could be wrong */
		send_check(c);
		return;
	}
	c->doubt = (struct doubt_check){.op = {.done = on_check_doubted},
	    .repository = c->claimed.repository,
	    .head_sha = w->head_sha,
	    .name = w->name};
	if (store_doubt_check(c->claimed.store, &c->doubt))
		claimed_end_busy(&c->claimed);
}

static const struct github_listed_check *find_listed(const struct checking *c, const char *name)
{
	for (size_t i = 0; i < c->listed.n; i++)
		if (str_eq(c->listed.list[i].name, name))
			return &c->listed.list[i];
	return NULL;
}

static bool is_new_check(const struct planned_check *w) { return !w->check_id || w->is_recreated; }

static void on_checks_listed(struct claimed *claimed, struct github_call *call)
{
	struct checking *c = CONTAINER_OF(claimed, struct checking, claimed);

	if (call->result.err) {
		fail_checks(c, &call->result);
		return;
	}
	c->has_listed = true;
	write_next_check(c);
}

static void write_next_check(struct checking *c)
{
	struct claimed *claimed = &c->claimed;
	bool is_last = c->at == c->plan.n;

	if (is_last || c->n_written >= CHECKS_A_TURN) {
		if (is_last && c->n_written)
			claimed->effect.is_uncertain = false;
		if (is_last && c->refusal[0])
			claimed_end(claimed, OUTBOX_DEAD, 0, c->refusal);
		else if (is_last)
			claimed_end_ok(claimed);
		else
			claimed_end(claimed, OUTBOX_AGAIN, clock_wall_ms(), NULL);
		return;
	}
	const struct planned_check *w = current_check(c);
	if (!c->has_listed && (is_new_check(w) || claimed->effect.is_uncertain)) {
		if (claimed_begin_call(claimed, &c->listed.call, on_checks_listed))
			github_checks_list(claimed->github, &c->listed, claimed->repository, c->head_sha);
		return;
	}
	/* Decides which one to write, and from which annotation on. */
	const struct github_listed_check *found = find_listed(c, w->name);

	c->is_doubted = false;
	c->check_id = is_new_check(w) ? 0 : w->check_id;
	c->n_annotations = 0;
	if (found && w->external_id && found->id != w->check_id && str_eq(found->external_id, w->external_id))
		c->check_id = found->id; /* ours; its answer was lost */
	if (found && found->id == c->check_id)
		c->n_annotations = (size_t)found->n_annotations;
	if (c->n_annotations > w->output.n_annotations && w->external_id) { /* GitHub removes none */
		c->check_id = 0;
		c->n_annotations = 0;
	}
	write_one_check(c);
}

/* ---- the plan ---- */

static void plan_checks(struct claimed *claimed)
{
	struct checking *c = CONTAINER_OF(claimed, struct checking, claimed);
	const struct config *config = claimed->config;

	check_plan_make(claimed->change.view, &c->on_record,
	    &(struct check_options){.public_url = config->public_url,
		.bot = claimed_app_name(claimed),
		.l3_may_fail = config->checks_l3_may_fail},
	    &c->plan);
	snprintf(c->head_sha, sizeof(c->head_sha), "%s", claimed->change.view->head_sha);
	claimed_drop_change(claimed); /* it may be large, and GitHub slow */
	if (c->plan.n && clock_mono_ms() < claimed->p->checks_refused_until_mono_ms)
		claimed_end(claimed, OUTBOX_DEAD, 0, "the App may not write check runs");
	else
		write_next_check(c);
}

static void on_record_read(struct store_query *q)
{
	struct checking *c = CONTAINER_OF(q, struct checking, on_record.q);

	if (claimed_is_stored(&c->claimed, q->err, &q->why))
		claimed_learn_app(&c->claimed, plan_checks);
}

/* Two PRs with one head share its check runs, so only one of them writes at a time. */
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

static void read_record(struct claimed *claimed)
{
	struct checking *c = CONTAINER_OF(claimed, struct checking, claimed);
	const struct change_view *v = claimed->change.view;

	if (!v) {
		claimed_end_ok(claimed);
		return;
	}
	c->change_id = v->change_id;
	c->on_record = (struct list_checks){
	    .q = {.done = on_record_read}, .repository = claimed->repository, .number = claimed->number};
	if (v->is_being_attributed || is_shared_now(c) || store_list_checks(claimed->store, &c->on_record)) {
		c->change_id = 0;
		claimed_end_busy(claimed);
	}
}

static void release_checks(struct effect *e)
{
	struct checking *c = CONTAINER_OF(e, struct checking, claimed.effect);

	github_check_list_release(&c->listed);
	list_checks_release(&c->on_record);
	check_plan_release(&c->plan);
	claimed_release(&c->claimed);
}

static void begin_checks(struct effect *e)
{
	struct claimed *c = CONTAINER_OF(e, struct claimed, effect);

	claimed_begin(c, "checks");
	if (c->config->checks_enabled)
		claimed_read_change(c, read_record);
	else
		claimed_end_ok(c);
}

const struct effect_kind checks_kind =
    CLAIMED_KIND(OUTBOX_CHECKS, CHECKS_LANE, struct checking, begin_checks, release_checks);
