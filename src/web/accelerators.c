/* /api/v1/dashboard and /: the state of every accelerator at upstream's newest commit. /api/v1/accelerators: all of them
 * with their figures; and one with its page, its jobs and its numbers. /api/crcr/level-status: which repositories no longer
 * meet L3's criteria. */
#include "history/days.h"
#include "store/registry.h"
#include "views/accelerator.h"
#include "views/accelerator_page.h"
#include "views/dashboard.h"
#include "views/record_json.h"
#include "web/params.h"
#include "web/web_internal.h"

/* ---- all ---- */

struct figures_request {
	struct get_figures get;
	void (*on_json)(const struct store_query *q, json_t *list, void *owner);
	void *owner;
	struct config *config; /* as of the request */
};

static void figures_done(struct store_query *q)
{
	struct figures_request *f = CONTAINER_OF(q, struct figures_request, get.q);
	json_t *list = q->err ? NULL : json_array();

	for (size_t i = 0; list && i < f->config->n_accelerators; i++) {
		const struct accelerator *a = &f->config->accelerators[i];
		const struct accelerator_figures *figures = NULL;

		for (size_t k = 0; k < f->get.n && !figures; k++)
			if (str_eq(f->get.list[k].name, a->name))
				figures = &f->get.list[k];
		json_array_append_new(list, accelerator_json(f->config, a, figures));
	}
	f->on_json(q, list, f->owner);
	get_figures_release(&f->get);
	config_unref(f->config);
	free(f);
}

void web_accelerators(struct web *w, void (*done)(const struct store_query *q, json_t *list, void *owner), void *owner)
{
	struct figures_request *f = xcalloc(1, sizeof(*f));

	f->on_json = done;
	f->owner = owner;
	f->config = w->config ? config_ref(w->config) : NULL;
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	int err =
	    w->config ? store_get_figures(w->deps.store, &f->get) : ERR_BUSY; /* 0: the query belongs to a reader now */
	if (err) {
		f->get.q.err = err;
		figures_done(&f->get.q);
	}
}

static void respond_accelerators(const struct store_query *q, json_t *list, void *owner)
{
	struct http_request *r = owner;

	if (q->err)
		web_respond_busy(r);
	else
		web_respond_json(r, 200, json_pack("{s:o}", "accelerators", list));
}

void web_on_accelerators(struct http_request *r, void *owner) { web_accelerators(owner, respond_accelerators, r); }

/* ---- one ---- */

static const char NO_ACCELERATOR[] = "no such accelerator";

enum { LIMIT_JOBS = 50, LIMIT_NUMBERS = 20, DAYS_NUMBERS = 90, DAYS_NUMBERS_MAX = 800 };

/* A request about the accelerator in the address. NULL: the request is answered. */
static void *accelerator_read_new(struct web *w, struct http_request *r, const struct web_read_kind *kind)
{
	struct web_read *q = web_read_new(w, r, kind);

	if (!q)
		return NULL;
	q->accelerator = config_accelerator(q->config, http_segment(r, 0));
	if (q->accelerator)
		return q;
	web_read_await(q, ERR_NOT_FOUND);
	return NULL;
}

/* ---- the page ---- */

struct page_request {
	struct web_read read;
	struct get_accelerator_page get;
};

static void release_page(void *q) { get_accelerator_page_release(&((struct page_request *)q)->get); }

static char *make_page(void *owner)
{
	struct page_request *q = owner;

	return accelerator_page_json(q->read.config, q->read.accelerator, &q->get);
}

static const struct web_read_kind PAGE = {
    sizeof(struct page_request), release_page, NO_ACCELERATOR, .make_text = make_page};

void web_on_accelerator(struct http_request *r, void *owner)
{
	struct page_request *q = accelerator_read_new(owner, r, &PAGE);

	if (!q)
		return;
	q->get.name = q->read.accelerator->name;
	q->get.now_ms = clock_wall_ms();
	web_read_await(q, store_get_accelerator_page(q->read.store, &q->get));
}

/* ---- jobs ---- */

struct jobs_request {
	struct web_read read;
	struct list_accelerator_jobs list;
};

static void release_jobs(void *q) { page_jobs_release(&((struct jobs_request *)q)->list.jobs); }

static size_t count_jobs(const void *q) { return ((const struct jobs_request *)q)->list.jobs.n; }

static char *make_jobs(void *owner)
{
	struct jobs_request *q = owner;
	struct page_jobs *jobs = &q->list.jobs;
	struct buf out = BUF_INIT(SIZE_MAX / 2);

	if (q->read.accelerator->level == LEVEL_1)
		page_jobs_release(jobs);
	json_out_open(&out, NULL, '{');
	page_jobs_out(&out, jobs, q->read.config->public_url);
	json_out_value(&out, "next", page_jobs_next(jobs));
	json_out_close(&out, '}');
	return buf_detach(&out);
}

static const struct web_read_kind JOBS = {
    sizeof(struct jobs_request), release_jobs, NO_ACCELERATOR, .make_text = make_jobs, .n_items = count_jobs};

/* The cursor is the last job of the page before. */
void web_on_accelerator_jobs(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	struct jobs_request *q = accelerator_read_new(owner, r, &JOBS);
	char text[32];

	if (!q)
		return;
	q->list.accelerator = q->read.accelerator->name;
	q->list.limit = (int)params_limit(&p, LIMIT_JOBS);
	if (params_cursor(&p, text, sizeof(text)) && (parse_int64(text, &q->list.before_id) || q->list.before_id <= 0))
		params_wrong(&p, "cursor", WRONG_CURSOR);
	if (!params_refuse_read(&p, q))
		web_read_await(q, store_list_accelerator_jobs(q->read.store, &q->list));
}

/* ---- numbers ---- */

struct numbers_request {
	struct web_read read;
	struct list_numbers list;
	int64_t days;
	char after_unit[REPORT_UNIT_MAX_BYTES + 1];
};

static void release_numbers(void *q) { list_numbers_release(&((struct numbers_request *)q)->list); }

static size_t count_numbers(const void *owner)
{
	const struct list_numbers *l = &((const struct numbers_request *)owner)->list;
	size_t n = l->n;

	for (size_t i = 0; i < l->n; i++)
		n += l->list[i].n;
	return n;
}

static char *make_numbers(void *owner)
{
	struct numbers_request *q = owner;

	if (q->read.accelerator->level == LEVEL_1) {
		list_numbers_release(&q->list);
		q->list.has_more = false;
	}
	return numbers_json(&q->list, q->days);
}

static const struct web_read_kind NUMBERS = {sizeof(struct numbers_request), release_numbers, NO_ACCELERATOR,
    .make_text = make_numbers, .n_items = count_numbers};

void web_on_accelerator_numbers(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	struct numbers_request *q = accelerator_read_new(owner, r, &NUMBERS);
	char text[32 + REPORT_UNIT_MAX_BYTES + 1], *unit;

	if (!q)
		return;
	q->days = params_int(&p, "days", 1, DAYS_NUMBERS_MAX, DAYS_NUMBERS);
	q->list.limit = (int)params_limit(&p, LIMIT_NUMBERS);
	if (params_cursor(&p, text, sizeof(text))) { /* "TEST UNIT": the last line of the page before */
		unit = strchr(text, ' ');
		if (unit)
			*unit++ = '\0';
		if (!unit || strlen(unit) > REPORT_UNIT_MAX_BYTES || parse_int64(text, &q->list.after_test) ||
		    q->list.after_test <= 0)
			params_wrong(&p, "cursor", WRONG_CURSOR);
		else
			snprintf(q->after_unit, sizeof(q->after_unit), "%s", unit);
	}
	q->list.accelerator = q->read.accelerator->name;
	q->list.after_unit = q->after_unit;
	q->list.since_ms = clock_wall_ms() - (q->days - 1) * 86400000;
	if (!params_refuse_read(&p, q))
		web_read_await(q, store_list_numbers(q->read.store, &q->list));
}

/* ---- the dashboard ---- */

/* The work for a row of the dashboard, in entries of other answers: it has 60 days. */
enum { ITEMS_PER_ROW = 60 };

struct dashboard_request {
	struct web_read read;
	struct get_dashboard get;
};

static void release_dashboard(void *q) { dashboard_free(((struct dashboard_request *)q)->get.view); }

static size_t count_dashboard(const void *q)
{
	return ((const struct dashboard_request *)q)->get.view->n_rows * ITEMS_PER_ROW;
}

static char *make_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	return dashboard_json(q->get.view, q->get.repository, q->get.branch, q->read.config->public_url);
}

static const struct web_read_kind DASHBOARD = {
    sizeof(struct dashboard_request), release_dashboard, .make_text = make_dashboard, .n_items = count_dashboard};

void web_on_dashboard(struct http_request *r, void *owner)
{
	struct dashboard_request *q = web_read_new(owner, r, &DASHBOARD);

	if (!q)
		return;
	q->get.repository = q->read.config->upstream_repository;
	/* "": no branch is configured, so no push is a change */
	q->get.branch = q->read.config->upstream_branches[0] ? q->read.config->upstream_branches[0] : "";
	q->get.now_ms = clock_wall_ms();
	web_read_await(q, store_get_dashboard(q->read.store, &q->get));
}

/* ---- the level status, in the format of PyTorch's HUD (pytorch/test-infra, torchci/pages/api/crcr/level-status.ts), so
 * that programs that read HUD's can read this one ---- */

struct level_status_request {
	struct web_read read;
	struct list_level_status list;
};

static void release_level_status(void *s) { list_level_status_release(&((struct level_status_request *)s)->list); }

static size_t count_level_status(const void *s) { return ((const struct level_status_request *)s)->list.n; }

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
	/* The labels of HUD's page. */
	static const char *const labels[N_CRITERIA] = {
	    [CRITERION_END_TO_END] = "End-to-End Time (P50)",
	    [CRITERION_TIMEOUT] = "Timeout Rate",
	    [CRITERION_PASS] = "Job Pass Rate",
	};
	const char *label = labels[f->criterion];
	char *measured, *amount;

	if (!f->has_measure)
		measured = xstrdup("\xe2\x80\x93");
	else if (f->unit == UNIT_SHARE)
		measured = xasprintf("%.1f%%", f->measured * 100);
	else
		measured = seconds_text(f->measured);
	amount = f->unit == UNIT_SHARE ? xasprintf("%.3g%%", f->target * 100) : seconds_text(f->target);
	json_t *v = json_pack("{s:s, s:s, s:o, s:o}", "criterion", label ? label : level_criterion_name(f->criterion),
	    "measured", measured, "target", json_sprintf("%s %s", f->is_at_least ? "\xe2\x89\xa5" : "<", amount), "met",
	    f->met == MET_UNKNOWN ? json_null() : json_boolean(f->met == MET_YES));
	FREE_ALL(measured, amount);
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
	return json_pack("{s:s?, s:s, s:s?, s:b, s:i, s:o, s:s, s:I, s:I, s:o}", "repo", one->repository, "level",
	    level_name(LEVEL_3), "change", p.level < LEVEL_3 ? "demote" : NULL, "noData", p.is_silent, "windowDays",
	    (int)DEMOTION_DAYS, "criteria", criteria, "accelerator", one->accelerator, "jobs", (json_int_t)w->n_jobs,
	    "failedUpstream", (json_int_t)w->n_upstream, "passRateWithUpstream", share_json(w->n_passed, w->n_jobs));
}

static json_t *make_level_status(void *owner)
{
	struct level_status_request *s = owner;
	json_t *list = json_array();

	for (size_t i = 0; i < s->list.n; i++)
		json_array_append_new(list, repository_json(s->read.config, &s->list.list[i]));
	return json_pack("{s:o}", "repos", list);
}

static const struct web_read_kind LEVEL_STATUS = {sizeof(struct level_status_request), release_level_status,
    .make = make_level_status, .n_items = count_level_status};

void web_on_level_status(struct http_request *r, void *owner)
{
	struct level_status_request *s = web_read_new(owner, r, &LEVEL_STATUS);

	if (!s)
		return;
	s->list.now_ms = clock_wall_ms();
	web_read_await(s, store_list_level_status(s->read.store, &s->list));
}
