#include "dispatch/plan.h"

/* ---- parts ---- */

/* The reason for which a policy holds a change. association NULL: merged code, which every policy admits. */
struct hold {
	const char *reason; /* NULL: it does not */
	bool is_for_good;   /* ok-to-test does not release it */
	enum author_rank needs;
};

static struct hold hold_of(enum trust trust, const char *association)
{
	struct hold h = {
	    .reason = association ? trust_holds_pull(trust, association) : NULL, .needs = trust_needs(trust)};

	h.is_for_good = h.reason && trust == TRUST_MERGED;
	return h;
}

static void add_want(
    struct plan *p, const struct accelerator *a, const struct runner *r, const char *target, struct hold hold)
{
	*ARRAY_PUSH(p->wants, p->n_wants) = (struct plan_want){
	    .accelerator = xstrdup(a->name),
	    .runner = xstrdup(r->name),
	    .kind = r->kind,
	    .target = xstrdup(target),
	    .held_reason = xstrdup_or_null(hold.reason),
	    .is_held_for_good = hold.is_for_good,
	    .needs = hold.needs,
	    .acknowledge_ms = deadline_acknowledge_ms(&a->deadlines, r->kind),
	    .start_ms = a->deadlines.start_ms,
	    .finish_ms = a->deadlines.finish_ms,
	};
}

/* Adds every runner of the accelerator that tests this kind of change. A runner that infra hosts needs infra's trust
 * and the accelerator's. */
static void add_accelerator_wants(
    struct plan *p, const struct config *c, const struct accelerator *a, const char *association)
{
	struct hold hold = hold_of(a->trust, association);
	struct hold infra = hold_of(c->infra_trust, association);

	if (hold.reason)
		infra.reason = hold.reason;
	infra.is_for_good |= hold.is_for_good;
	if (infra.needs < hold.needs)
		infra.needs = hold.needs;
	for (size_t i = 0; i < a->n_runners; i++) {
		const struct runner *r = &a->runners[i];
		const char *const targets[] = {
		    [RUNNER_GITHUB] = r->repository,
		    [RUNNER_WEBHOOK] = r->url,
		    [RUNNER_PULL] = "",
		    [RUNNER_INFRA] = c->infra_repository,
		};

		if (targets[r->kind] && (!r->is_nightly_only || p->change_kind == CHANGE_NIGHTLY))
			add_want(p, a, r, targets[r->kind], r->kind == RUNNER_INFRA ? infra : hold);
	}
}

/* The infra repository gets each change, also if it hosts no accelerator. It has no deadlines, because it does not
 * report. */
static void add_infra(struct plan *p, const struct config *c, const char *association)
{
	static char no_name[] = "", runner_name[] = "infra";
	static const struct accelerator itself = {.name = no_name};
	static const struct runner runner = {.name = runner_name, .kind = RUNNER_INFRA};

	if (c->infra_repository)
		add_want(p, &itself, &runner, c->infra_repository, hold_of(c->infra_trust, association));
}

static void ignore_event(struct plan *p, const char *reason)
{
	p->kind = PLAN_IGNORE;
	p->reason = xstrdup(reason);
}

/* ---- pull requests ---- */

static const char *sent_action(enum pull_action a)
{
	static const char *const actions[N_PULL_ACTIONS] = {
	    [PULL_OPENED] = "opened",
	    [PULL_REOPENED] = "reopened",
	    [PULL_CLOSED] = "closed",
	    [PULL_CONVERTED_TO_DRAFT] = "closed",
	    [PULL_UNLABELED] = "closed",
	};

	return a < N_PULL_ACTIONS && actions[a] ? actions[a] : "synchronize";
}

/* Adds the infra repository and all accelerators that test this PR in its present state. */
static enum plan_verdict add_all_wants(
    struct plan *p, const struct event *ev, const struct config *c, const char *const *files)
{
	add_infra(p, c, ev->pull.author_association);
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];
		/* With an incomplete list, every path matches. */
		bool is_cut = files && strv_contains(files, FILES_INCOMPLETE);
		enum trigger_result result = trigger_pull(a, &ev->pull, is_cut ? NULL : files);

		if (result == TRIGGER_NEEDS_FILES && !is_cut)
			return PLAN_NEEDS_FILES;
		if (result != TRIGGER_NO)
			add_accelerator_wants(p, c, a, ev->pull.author_association);
	}
	return PLAN_READY;
}

/* A label was changed, or the PR became a draft. Mostly this only updates the recorded state. The plan also contains
 * the other accelerators, for a head whose own event was lost. */
static enum plan_verdict update_change(
    struct plan *p, const struct event *ev, const struct config *c, const char *const *files)
{
	/* the accelerator that a ciflow/crcr/NAME label starts and stops */
	const struct accelerator *a = NULL;

	for (size_t i = 0; ev->label && str_has_prefix(ev->label, LABEL_PREFIX) && i < c->n_accelerators; i++)
		if (c->accelerators[i].triggers.label == LABEL_REQUIRED &&
		    strcasecmp(c->accelerators[i].name, ev->label + strlen(LABEL_PREFIX)) == 0)
			a = &c->accelerators[i];
	p->kind = PLAN_UPDATE;
	if (ev->pull_action == PULL_UNLABELED && a)
		strv_add(&p->drops, a->name);
	for (size_t i = 0; ev->pull_action == PULL_CONVERTED_TO_DRAFT && i < c->n_accelerators; i++)
		if (!c->accelerators[i].triggers.drafts)
			strv_add(&p->drops, c->accelerators[i].name);
	if (!ev->pull.is_open)
		return PLAN_READY;
	if (add_all_wants(p, ev, c, files) == PLAN_NEEDS_FILES)
		return PLAN_NEEDS_FILES;
	for (size_t i = 0; i < p->n_wants; i++) {
		bool is_meant = ev->pull_action == PULL_LABELED && a && str_eq(p->wants[i].accelerator, a->name);

		p->wants[i].is_for_new_head = !is_meant;
		if (is_meant)
			p->kind = PLAN_START;
	}
	return PLAN_READY;
}

static enum plan_verdict plan_pull(
    struct plan *p, const struct event *ev, const struct config *c, const char *const *files)
{
	p->change_kind = CHANGE_PULL_REQUEST;
	p->event_type = "pull_request";
	p->sent_action = sent_action(ev->pull_action);
	p->head_sha = xstrdup(ev->pull.head_sha);
	p->before = xstrdup_or_null(ev->before);
	p->event_ms = ev->pull.updated_ms;
	struct pull_info *to = &p->pull;

	*to = ev->pull;
	to->head_sha = xstrdup_or_null(ev->pull.head_sha);
	to->base_sha = xstrdup_or_null(ev->pull.base_sha);
	to->base_ref = xstrdup_or_null(ev->pull.base_ref);
	to->title = xstrdup_or_null(ev->pull.title);
	to->author = xstrdup_or_null(ev->pull.author);
	to->author_association = xstrdup_or_null(ev->pull.author_association);
	to->labels = strv_copy((const char *const *)ev->pull.labels);

	switch (ev->pull_action) {
	case PULL_OPENED:
	case PULL_REOPENED:
	case PULL_SYNCHRONIZE:
	case PULL_READY_FOR_REVIEW:
	case PULL_BASE_CHANGED:
		if (!ev->pull.is_open) {
			ignore_event(p, "the pull request is closed");
			return PLAN_READY;
		}
		p->kind = PLAN_START;
		p->starts_round = ev->pull_action == PULL_REOPENED || ev->pull_action == PULL_BASE_CHANGED;
		return add_all_wants(p, ev, c, files);
	case PULL_CONVERTED_TO_DRAFT:
	case PULL_LABELED:
	case PULL_UNLABELED:
		return update_change(p, ev, c, files);
	case PULL_CLOSED:
		p->kind = PLAN_CLOSE;
		return PLAN_READY;
	case N_PULL_ACTIONS:
		break;
	}
	ignore_event(p, "this action is not used");
	return PLAN_READY;
}

/* ---- pushes ---- */

static void plan_push(struct plan *p, const struct event *ev, const struct config *c)
{
	static const char HEADS[] = "refs/heads/";
	static const char NO_COMMIT[] = "0000000000000000000000000000000000000000";
	const char *branch = ev->ref + sizeof(HEADS) - 1, *reason = NULL;
	char nothing[] = "";
	const struct push_commit head = {
	    .sha = ev->after,
	    .author = ev->head_author ? ev->head_author : nothing,
	    .title = ev->head_message ? ev->head_message : nothing,
	    .at_ms = ev->pushed_ms,
	};
	const struct push_commit *list = ev->n_commits ? ev->commits : &head;

	p->change_kind = CHANGE_PUSH;
	p->event_type = "push";
	p->sent_action = "";
	if (!str_has_prefix(ev->ref, HEADS))
		reason = "a push to something that is not a branch";
	else if (!strv_contains((const char *const *)c->upstream_branches, branch))
		reason = "a push to a branch that upstream.branches does not list";
	else if (ev->is_deleted)
		reason = "the branch was deleted";
	if (reason) {
		ignore_event(p, reason);
		return;
	}
	p->kind = PLAN_START;
	p->head_sha = xstrdup(ev->after);
	p->ref = xstrdup(ev->ref);
	p->title = xstrdup_or_null(ev->head_message);
	p->author = xstrdup_or_null(ev->head_author);
	p->event_ms = ev->pushed_ms;
	/* The branch's history from this push. If the push was forced, or GitHub sent an incomplete list, only its head is
	 * certain. */
	if (ev->n_commits && !ev->is_forced && !str_eq(ev->before, NO_COMMIT))
		p->before = xstrdup(ev->before);
	p->n_commits = ev->n_commits ? ev->n_commits : 1;
	p->commits = xcalloc(p->n_commits, sizeof(*p->commits));
	for (size_t i = 0; i < p->n_commits; i++)
		p->commits[i] =
		    (struct push_commit){xstrdup(list[i].sha), xstrdup(list[i].author), xstrdup(list[i].title),
			list[i].at_ms, list[i].files ? strv_copy((const char *const *)list[i].files) : NULL};
	add_infra(p, c, NULL);
	for (size_t i = 0; i < c->n_accelerators; i++)
		if (trigger_push(&c->accelerators[i], branch)) {
			size_t n_before = p->n_wants;

			add_accelerator_wants(p, c, &c->accelerators[i], NULL);
			for (size_t k = n_before; k < p->n_wants; k++)
				p->wants[k].every_ms = c->accelerators[i].triggers.push_every_ms;
		}
}

enum plan_verdict plan_make(const struct event *ev, const struct config *c, const char *const *files, struct plan *ret)
{
	enum plan_verdict verdict = PLAN_READY;

	*ret = (struct plan){.repository = xstrdup(ev->repository), .original_action = xstrdup(ev->action)};
	if (strcasecmp(ev->repository, c->upstream_repository) != 0)
		ignore_event(ret, "another repository than upstream's");
	else if (ev->kind == EVENT_PUSH)
		plan_push(ret, ev, c);
	else
		verdict = plan_pull(ret, ev, c, files);
	if (verdict == PLAN_NEEDS_FILES)
		plan_release(ret);
	return verdict;
}

void plan_nightly(
    const struct nightly_head *head, const struct accelerator *a, const struct config *c, struct plan *ret)
{
	*ret = (struct plan){
	    .kind = PLAN_START,
	    .change_kind = CHANGE_NIGHTLY,
	    .repository = xstrdup(c->upstream_repository),
	    .head_sha = xstrdup(head->sha),
	    .ref = xasprintf("refs/heads/%s", head->branch),
	    .title = xstrdup_or_null(head->title),
	    .author = xstrdup_or_null(head->author),
	    .starts_round = true,
	    .event_type = "nightly",
	    .sent_action = "",
	    .original_action = xstrdup(""),
	};
	add_accelerator_wants(ret, c, a, NULL);
}
