/* /api/crcr/level-status: which repositories no longer meet L3's criteria, in the format of PyTorch's HUD
 * (pytorch/test-infra, torchci/pages/api/crcr/level-status.ts), so that programs that read HUD's can read this one. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "store/registry.h"
#include "views/accelerator.h"
#include "web/web_internal.h"

struct level_status_request {
	struct list_level_status list;
	struct http_request *request;
	struct config *config; /* as of the request */
};

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
	json_t *v = json_object();
	char *measured, *amount, *target;

	if (!f->has_measure)
		measured = xstrdup("\xe2\x80\x93");
	else if (f->unit == UNIT_SHARE)
		measured = xasprintf("%.1f%%", f->measured * 100);
	else
		measured = seconds_text(f->measured);
	amount =
	    f->unit == UNIT_SHARE ? xasprintf("%.3g%%", f->target * 100) : seconds_text(f->target);
	target = xasprintf("%s %s", f->is_at_least ? "\xe2\x89\xa5" : "<", amount);
	json_set_str(v, "criterion", criterion_label(f->criterion));
	json_set_str(v, "measured", measured);
	json_set_str(v, "target", target);
	json_object_set_new(
	    v, "met", f->met == MET_UNKNOWN ? json_null() : json_boolean(f->met == MET_YES));
	free(measured);
	free(amount);
	free(target);
	return v;
}

static json_t *repository_json(const struct config *c, const struct level_repository *one)
{
	const struct level_numbers *n = &one->numbers;
	const struct level_window *w = &n->demotion;
	struct level_proposal p = level_propose(LEVEL_3, n, &c->level_3, &c->level_4);
	struct level_finding list[N_CRITERIA];
	json_t *v = json_object(), *criteria = json_array();

	for (size_t i = 0, k = level_findings(n, &c->level_3, STEP_DOWN, list); i < k; i++)
		json_array_append_new(criteria, criterion_json(&list[i]));
	json_set_str(v, "repo", one->repository);
	json_set_str(v, "level", level_name(LEVEL_3));
	json_set_str(v, "change", p.level < LEVEL_3 ? "demote" : NULL);
	json_object_set_new(v, "noData", json_boolean(p.is_silent));
	json_set_int(v, "windowDays", DEMOTION_DAYS);
	json_object_set_new(v, "criteria", criteria);
	json_set_str(v, "accelerator", one->accelerator);
	json_set_int(v, "jobs", w->n_jobs);
	json_set_int(v, "failedUpstream", w->n_upstream);
	json_object_set_new(v, "passRateWithUpstream",
	    w->n_jobs ? json_real((double)w->n_passed / (double)w->n_jobs) : json_null());
	return v;
}

static void on_level_listed(struct store_query *q)
{
	struct level_status_request *s = CONTAINER_OF(q, struct level_status_request, list.q);
	json_t *list = json_array();

	for (size_t i = 0; i < s->list.n; i++)
		json_array_append_new(list, repository_json(s->config, &s->list.list[i]));
	if (q->err)
		web_respond_failed(s->request, q->err, "");
	else
		web_respond_json(s->request, 200, json_pack("{s:O}", "repos", list));
	json_decref(list);
	list_level_status_release(&s->list);
	config_unref(s->config);
	free(s);
}

static void on_level_status(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct level_status_request *s;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->request = r;
	s->config = config_ref(w->config);
	s->list.q.done = on_level_listed;
	s->list.now_ms = clock_wall_ms();
	if (store_list_level_status(w->deps.store, &s->list)) {
		web_respond_busy(r);
		config_unref(s->config);
		free(s);
	}
}

void web_add_level_status_routes(struct web *w)
{
	web_add_resource(w, "/api/crcr/level-status", NULL, on_level_status);
}
