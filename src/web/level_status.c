/* /api/crcr/level-status: which repositories no longer meet L3's criteria, in the format of PyTorch's HUD
 * (pytorch/test-infra, torchci/pages/api/crcr/level-status.ts), so that programs that read HUD's can read this one. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "store/registry.h"
#include "views/accelerator.h"
#include "views/record_json.h"
#include "web/answer.h"
#include "web/web_internal.h"

struct level_status_request {
	struct web_read read;
	struct list_level_status list;
};

static void release_level_status(void *owner)
{
	struct level_status_request *s = owner;

	list_level_status_release(&s->list);
}

/* The labels of HUD's page. */
static const char *criterion_label(enum level_criterion c)
{
	static const char *const labels[N_CRITERIA] = {
	    [CRITERION_END_TO_END] = "End-to-End Time (P50)",
	    [CRITERION_TIMEOUT] = "Timeout Rate",
	    [CRITERION_PASS] = "Job Pass Rate",
	};

	return labels[c] ? labels[c] : level_criterion_name(c);
}

/* free() */
static char *seconds_text(double seconds)
{
	if (seconds < 60)
		return xasprintf("%.0f s", seconds);
	if (seconds < 3600)
		return xasprintf("%.4g min", seconds / 60);
	return xasprintf("%.3g h", seconds / 3600);
}

static json_t *criterion_json(const struct level_finding *f)
{
	char *measured, *amount;
	json_t *v;

	if (!f->has_measure)
		measured = xstrdup("\xe2\x80\x93");
	else if (f->unit == UNIT_SHARE)
		measured = xasprintf("%.1f%%", f->measured * 100);
	else
		measured = seconds_text(f->measured);
	amount =
	    f->unit == UNIT_SHARE ? xasprintf("%.3g%%", f->target * 100) : seconds_text(f->target);
	v = json_pack("{s:s, s:s, s:o, s:o}", "criterion", criterion_label(f->criterion),
	    "measured", measured, "target",
	    json_sprintf("%s %s", f->is_at_least ? "\xe2\x89\xa5" : "<", amount), "met",
	    f->met == MET_UNKNOWN ? json_null() : json_boolean(f->met == MET_YES));
	free(measured);
	free(amount);
	return v;
}

static json_t *repository_json(const struct config *c, const struct level_repository *one)
{
	const struct level_numbers *n = &one->numbers;
	const struct level_window *w = &n->demotion;
	struct level_proposal p = level_propose(LEVEL_3, n, &c->level_3, &c->level_4);
	struct level_finding list[N_CRITERIA];
	json_t *criteria = json_array();

	for (size_t i = 0, k = level_findings(n, &c->level_3, STEP_DOWN, list); i < k; i++)
		json_array_append_new(criteria, criterion_json(&list[i]));
	return json_pack("{s:s?, s:s, s:s?, s:b, s:i, s:o, s:s, s:I, s:I, s:o}", "repo",
	    one->repository, "level", level_name(LEVEL_3), "change",
	    p.level < LEVEL_3 ? "demote" : NULL, "noData", p.is_silent, "windowDays",
	    (int)DEMOTION_DAYS, "criteria", criteria, "accelerator", one->accelerator, "jobs",
	    (json_int_t)w->n_jobs, "failedUpstream", (json_int_t)w->n_upstream,
	    "passRateWithUpstream", share_json(w->n_passed, w->n_jobs));
}

static void on_level_listed(struct store_query *q)
{
	struct level_status_request *s = CONTAINER_OF(q, struct level_status_request, list.q);
	json_t *list;

	if (!web_read_goes_on(s, q->err, NULL))
		return;
	list = json_array();
	for (size_t i = 0; i < s->list.n; i++)
		json_array_append_new(list, repository_json(s->read.config, &s->list.list[i]));
	web_respond_json(s->read.request, 200, json_pack("{s:o}", "repos", list));
	web_read_free(s);
}

void web_on_level_status(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct level_status_request *s = web_read_new(w, r, sizeof(*s), release_level_status);

	if (!s)
		return;
	s->list.q.done = on_level_listed;
	s->list.now_ms = clock_wall_ms();
	(void)web_read_goes_on(s, store_list_level_status(w->deps.store, &s->list), NULL);
}
