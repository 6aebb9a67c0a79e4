/* Re-run on a check: the vendor's run is started again where it ran; a runner that has no such
 * runs gets another round. On the suite, and on the check that holds the verdict: all of them. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/asked.h"

/* The check that tells of all accelerators. */
static const char VERDICT_CHECK[] = "outpost";

static void look_up(struct planning *p);

static void add_rerun(struct asked *a, const struct rerun_target *t, bool is_whole)
{
	a->reruns = xrealloc(a->reruns, (a->n_reruns + 1) * sizeof(*a->reruns));
	a->reruns[a->n_reruns++] = (struct rerun_request){
	    .repository = xstrdup(t->repository),
	    .run_id = xstrdup(t->run_id),
	    .dispatch_id = xstrdup(t->dispatch_id),
	    .accelerator = xstrdup(t->accelerator),
	    .runner = xstrdup(t->runner),
	    .run_attempt = t->run_attempt,
	    .is_whole = is_whole,
	};
}

static void on_found(struct store_query *q)
{
	struct find_rerun *f = CONTAINER_OF(q, struct find_rerun, q);
	struct planning *p = f->owner;
	struct asked *a = p->asked;

	if (q->err) {
		planning_went_well(p, &q->why, q->err, look_up);
		return;
	}
	if (!f->pull_number) {
		planning_ignore(p, "not the head of an open pull request");
		return;
	}
	if (!f->n) {
		planning_ignore(p, "nothing that could run again");
		return;
	}
	a->number = f->pull_number;
	for (size_t i = 0; i < f->n; i++) {
		const struct rerun_target *t = &f->list[i];

		if (t->is_github && t->run_id && is_repository_name(t->repository))
			add_rerun(a, t, !f->check_name);
		else
			asked_add_retest(a, t->accelerator, t->runner);
	}
	planning_ask(p);
}

static void look_up(struct planning *p)
{
	struct asked *a = p->asked;
	const struct event *ev = &p->event;
	bool is_all = ev->kind == EVENT_CHECK_SUITE || str_eq(ev->check_name, VERDICT_CHECK);

	find_rerun_release(&a->found);
	a->found = (struct find_rerun){
	    .q.done = on_found,
	    .owner = p,
	    .repository = p->config->upstream_repository,
	    .head_sha = ev->check_head_sha,
	    .check_name = is_all ? NULL : ev->check_name,
	    .run_id = a->words,
	};
	planning_submitted(p, store_find_rerun(p->d->deps.store, &a->found), look_up);
}

void planning_rerun(struct planning *p)
{
	const struct event *ev = &p->event;

	if (strcasecmp(ev->repository, p->config->upstream_repository) != 0) {
		planning_ignore(p, "another repository than upstream's");
		return;
	}
	if (!str_eq(ev->action, "rerequested")) {
		planning_ignore(p, "the action is not used");
		return;
	}
	if (ev->check_app_id != p->config->github_app_id) {
		planning_ignore(p, "another App's check");
		return;
	}
	p->asked = asked_new();
	p->asked->login = xstrdup(ev->sender ? ev->sender : "");
	/* "{run_id}:{pr}" */
	p->asked->words = ev->check_external_id
			      ? xstrndup(ev->check_external_id, strcspn(ev->check_external_id, ":"))
			      : xstrdup("");
	look_up(p);
}
