#include "dispatch/plan.h"

#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/trigger.h"

const char FILES_INCOMPLETE[] = "/";

/* ---- parts ---- */

static void copy_pull(const struct pull_info *from, struct pull_info *to)
{
	*to = *from;
	to->head_sha = xstrdup_or_null(from->head_sha);
	to->base_sha = xstrdup_or_null(from->base_sha);
	to->base_ref = xstrdup_or_null(from->base_ref);
	to->title = xstrdup_or_null(from->title);
	to->author = xstrdup_or_null(from->author);
	to->author_association = xstrdup_or_null(from->author_association);
	to->labels = strv_copy((const char *const *)from->labels);
}

static void add_want(struct plan *p, const char *accelerator, const char *runner,
    enum runner_kind kind, const char *target, const char *held_reason,
    const struct deadlines *limits)
{
	p->wants = xrealloc(p->wants, (p->n_wants + 1) * sizeof(*p->wants));
	p->wants[p->n_wants++] = (struct plan_want){
	    .accelerator = xstrdup(accelerator),
	    .runner = xstrdup(runner),
	    .kind = kind,
	    .target = xstrdup(target),
	    .held_reason = xstrdup_or_null(held_reason),
	    .acknowledge_ms = deadline_acknowledge_ms(limits, kind),
	    .start_ms = limits->start_ms,
	    .finish_ms = limits->finish_ms,
	};
}

/* association NULL: merged code, which every policy admits. */
static const char *held(enum trust trust, const char *association)
{
	return association ? trust_holds_pull(trust, association) : NULL;
}

/* Every runner of the accelerator. What infra hosts needs infra's trust and its own. */
static void add_accelerator(struct plan *p, const struct config *c, const struct accelerator *a,
    const char *association)
{
	const char *reason = held(a->trust, association);

	for (size_t i = 0; i < a->n_runners; i++) {
		const struct runner *r = &a->runners[i];
		const char *target = "", *why = reason;

		switch (r->kind) {
		case RUNNER_GITHUB:
			target = r->repository;
			break;
		case RUNNER_WEBHOOK:
			target = r->url;
			break;
		case RUNNER_PULL:
			break;
		case RUNNER_INFRA:
			if (!c->infra_repository)
				continue;
			target = c->infra_repository;
			if (!why)
				why = held(c->infra_trust, association);
			break;
		}
		add_want(p, a->name, r->name, r->kind, target, why, &a->deadlines);
	}
}

/* The infra repository hears of each change, also when it hosts no accelerator. Nobody
 * reports for it by itself, so it has no deadlines. */
static void add_infra(struct plan *p, const struct config *c, const char *association)
{
	static const struct deadlines none;

	if (c->infra_repository)
		add_want(p, "", "infra", RUNNER_INFRA, c->infra_repository,
		    held(c->infra_trust, association), &none);
}

static void ignore(struct plan *p, const char *reason)
{
	p->kind = PLAN_IGNORE;
	p->reason = xstrdup(reason);
}

/* ---- pull requests ---- */

static const char *sent_action(enum pull_action a)
{
	switch (a) {
	case PULL_OPENED:
		return "opened";
	case PULL_REOPENED:
		return "reopened";
	case PULL_CLOSED:
	case PULL_CONVERTED_TO_DRAFT:
	case PULL_UNLABELED:
		return "closed";
	case PULL_SYNCHRONIZE:
	case PULL_READY_FOR_REVIEW:
	case PULL_BASE_CHANGED:
	case PULL_LABELED:
	case N_PULL_ACTIONS:
		break;
	}
	return "synchronize";
}

static enum wish wish_of(const struct accelerator *a, const struct pull_info *pull,
    const char *const *files)
{
	enum wish wish;

	if (!files || !strv_contains(files, FILES_INCOMPLETE))
		return trigger_pull(a, pull, files);
	wish = trigger_pull(a, pull, NULL);
	return wish == WISH_NEEDS_FILES ? WISH_YES : wish;
}

static enum plan_verdict start_all(struct plan *p, const struct event *ev, const struct config *c,
    const char *const *files)
{
	p->kind = PLAN_START;
	p->starts_round =
	    ev->pull_action == PULL_REOPENED || ev->pull_action == PULL_BASE_CHANGED;
	add_infra(p, c, ev->pull.author_association);
	for (size_t i = 0; i < c->n_accelerators; i++) {
		enum wish wish = wish_of(&c->accelerators[i], &ev->pull, files);

		if (wish == WISH_NEEDS_FILES)
			return PLAN_NEEDS_FILES;
		if (wish == WISH_YES)
			add_accelerator(p, c, &c->accelerators[i], ev->pull.author_association);
	}
	return PLAN_READY;
}

/* The accelerator that a ciflow/crcr/NAME label starts and stops, or NULL. */
static const struct accelerator *steered_by(const struct config *c, const char *label)
{
	const size_t n = strlen(LABEL_PREFIX);

	if (!label || !str_has_prefix(label, LABEL_PREFIX))
		return NULL;
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		if (strcasecmp(a->name, label + n) == 0)
			return a->triggers.label == LABEL_REQUIRED ? a : NULL;
	}
	return NULL;
}

static enum plan_verdict start_labeled(struct plan *p, const struct event *ev,
    const struct config *c, const char *const *files)
{
	const struct accelerator *a = steered_by(c, ev->label);
	enum wish wish = a && ev->pull.is_open ? wish_of(a, &ev->pull, files) : WISH_NO;

	if (wish == WISH_NEEDS_FILES)
		return PLAN_NEEDS_FILES;
	p->kind = PLAN_UPDATE;
	if (wish == WISH_YES) {
		p->kind = PLAN_START;
		add_accelerator(p, c, a, ev->pull.author_association);
	}
	return PLAN_READY;
}

static enum plan_verdict plan_pull(struct plan *p, const struct event *ev, const struct config *c,
    const char *const *files)
{
	const struct accelerator *a;

	p->change_kind = CHANGE_PULL_REQUEST;
	p->event_type = "pull_request";
	p->sent_action = sent_action(ev->pull_action);
	p->head_sha = xstrdup(ev->pull.head_sha);
	p->event_ms = ev->pull.updated_ms;
	copy_pull(&ev->pull, &p->pull);

	switch (ev->pull_action) {
	case PULL_OPENED:
	case PULL_REOPENED:
	case PULL_SYNCHRONIZE:
	case PULL_READY_FOR_REVIEW:
	case PULL_BASE_CHANGED:
		if (ev->pull.is_open)
			return start_all(p, ev, c, files);
		ignore(p, "the pull request is closed");
		return PLAN_READY;
	case PULL_CONVERTED_TO_DRAFT:
		p->kind = PLAN_UPDATE;
		for (size_t i = 0; i < c->n_accelerators; i++)
			if (!c->accelerators[i].triggers.drafts)
				strv_add(&p->drops, c->accelerators[i].name);
		return PLAN_READY;
	case PULL_LABELED:
		return start_labeled(p, ev, c, files);
	case PULL_UNLABELED:
		p->kind = PLAN_UPDATE;
		a = steered_by(c, ev->label);
		if (a)
			strv_add(&p->drops, a->name);
		return PLAN_READY;
	case PULL_CLOSED:
		p->kind = PLAN_CLOSE;
		return PLAN_READY;
	case N_PULL_ACTIONS:
		break;
	}
	ignore(p, "this action is not used");
	return PLAN_READY;
}

/* ---- pushes ---- */

static void plan_push(struct plan *p, const struct event *ev, const struct config *c)
{
	static const char HEADS[] = "refs/heads/";
	const char *branch = ev->ref + sizeof(HEADS) - 1;

	p->change_kind = CHANGE_PUSH;
	p->event_type = "push";
	p->sent_action = "";
	if (!str_has_prefix(ev->ref, HEADS)) {
		ignore(p, "a push to something that is no branch");
		return;
	}
	if (!strv_contains((const char *const *)c->upstream_branches, branch)) {
		ignore(p, "a push to a branch that upstream.branches does not list");
		return;
	}
	if (ev->is_deleted) {
		ignore(p, "the branch was deleted");
		return;
	}
	p->kind = PLAN_START;
	p->head_sha = xstrdup(ev->after);
	p->ref = xstrdup(ev->ref);
	p->title = xstrdup_or_null(ev->head_message);
	p->author = xstrdup_or_null(ev->head_author);
	p->event_ms = ev->pushed_ms;
	add_infra(p, c, NULL);
	for (size_t i = 0; i < c->n_accelerators; i++)
		if (trigger_push(&c->accelerators[i], branch))
			add_accelerator(p, c, &c->accelerators[i], NULL);
}

enum plan_verdict plan_make(const struct event *ev, const struct config *c,
    const char *const *files, struct plan *ret)
{
	enum plan_verdict verdict = PLAN_READY;

	*ret = (struct plan){
	    .repository = xstrdup(ev->repository),
	    .original_action = xstrdup(ev->action),
	};
	if (strcasecmp(ev->repository, c->upstream_repository) != 0)
		ignore(ret, "another repository than upstream's");
	else if (ev->kind == EVENT_PUSH)
		plan_push(ret, ev, c);
	else
		verdict = plan_pull(ret, ev, c, files);
	if (verdict == PLAN_NEEDS_FILES)
		plan_release(ret);
	return verdict;
}
