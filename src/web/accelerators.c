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
	struct http_request *request; /* NULL: on_json gets the list */
	void (*on_json)(int err, json_t *list, void *owner);
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
	if (f->on_json)
		f->on_json(q->err, list, f->owner);
	else if (q->err)
		web_respond_busy(f->request);
	else
		web_respond_json(f->request, 200, json_pack("{s:o}", "accelerators", list));
	get_figures_release(&f->get);
	config_unref(f->config);
	free(f);
}

/* For r, or for on_json. */
static void read_figures(
    struct web *w, struct http_request *r, void (*on_json)(int err, json_t *list, void *owner), void *owner)
{
	struct figures_request *f = xcalloc(1, sizeof(*f));

	f->request = r;
	f->on_json = on_json;
	f->owner = owner;
	f->config = w->config ? config_ref(w->config) : NULL;
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	f->get.q.err = w->config ? store_get_figures(w->deps.store, &f->get) : ERR_BUSY;
	if (f->get.q.err)
		figures_done(&f->get.q);
}

void web_accelerators(struct web *w, void (*done)(int err, json_t *list, void *owner), void *owner)
{
	read_figures(w, NULL, done, owner);
}

void web_on_accelerators(struct http_request *r, void *owner) { read_figures(owner, r, NULL, NULL); }

/* ---- one ---- */

static const char NO_ACCELERATOR[] = "no such accelerator";

enum { LIMIT_JOBS = 50, LIMIT_NUMBERS = 20, DAYS_NUMBERS = 90, DAYS_NUMBERS_MAX = 800 };

/* The common part of each request about one accelerator. */
struct about {
	struct web_read read;
	const struct accelerator *accelerator; /* the config's */
};

/* A struct of this size, which begins with a struct about. NULL: the request is answered. */
static void *about_new(struct web *w, struct http_request *r, size_t bytes, void (*release)(void *owner))
{
	struct about *a = web_read_new(w, r, bytes, release);

	if (!a)
		return NULL;
	a->accelerator = config_accelerator(a->read.config, http_segment(r, 0));
	return web_read_goes_on(a, a->accelerator ? 0 : ERR_NOT_FOUND, NO_ACCELERATOR) ? a : NULL;
}

/* ---- the page ---- */

struct page_request {
	struct about about;
	struct get_accelerator_page get;
};

static void release_page(void *owner)
{
	struct page_request *q = owner;

	get_accelerator_page_release(&q->get);
}

static json_t *make_page(void *owner)
{
	struct page_request *q = owner;

	return accelerator_page_json(q->about.read.config, q->about.accelerator, &q->get);
}

static void page_done(struct store_query *sq)
{
	struct page_request *q = CONTAINER_OF(sq, struct page_request, get.q);

	if (web_read_goes_on(q, sq->err, NO_ACCELERATOR))
		web_read_render(q, make_page, PAGE_TREND_DAYS + PAGE_CALENDAR_DAYS);
}

void web_on_accelerator(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct page_request *q = about_new(w, r, sizeof(*q), release_page);

	if (!q)
		return;
	q->get.name = q->about.accelerator->name;
	q->get.now_ms = clock_wall_ms();
	q->get.q.done = page_done;
	(void)web_read_goes_on(q, store_get_accelerator_page(w->deps.store, &q->get), NULL);
}

/* ---- jobs ---- */

struct jobs_request {
	struct about about;
	struct list_accelerator_jobs list;
};

static void release_jobs(void *owner)
{
	struct jobs_request *q = owner;

	page_jobs_release(&q->list.jobs);
}

static json_t *make_jobs(void *owner)
{
	struct jobs_request *q = owner;

	if (q->about.accelerator->level == LEVEL_1)
		page_jobs_release(&q->list.jobs);
	return json_pack("{s:o, s:o}", "jobs", page_jobs_json(&q->list.jobs, q->about.read.config->public_url), "next",
	    page_jobs_next(&q->list.jobs));
}

static void jobs_done(struct store_query *sq)
{
	struct jobs_request *q = CONTAINER_OF(sq, struct jobs_request, list.q);

	if (web_read_goes_on(q, sq->err, NO_ACCELERATOR))
		web_read_render(q, make_jobs, q->list.jobs.n);
}

/* The cursor is the last job of the page before. */
void web_on_accelerator_jobs(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	struct web *w = owner;
	struct jobs_request *q = about_new(w, r, sizeof(*q), release_jobs);
	char text[32];

	if (!q)
		return;
	q->list.accelerator = q->about.accelerator->name;
	q->list.limit = (int)params_limit(&p, LIMIT_JOBS);
	if (params_cursor(&p, text, sizeof(text)) && (parse_int64(text, &q->list.before_id) || q->list.before_id <= 0))
		params_wrong(&p, "cursor", WRONG_CURSOR);
	if (params_refuse(&p)) {
		web_read_free(q);
		return;
	}
	q->list.q.done = jobs_done;
	(void)web_read_goes_on(q, store_list_accelerator_jobs(w->deps.store, &q->list), NULL);
}

/* ---- numbers ---- */

struct numbers_request {
	struct about about;
	struct list_numbers list;
	int64_t days;
	char after_unit[REPORT_UNIT_MAX_BYTES + 1];
};

static void release_numbers(void *owner)
{
	struct numbers_request *q = owner;

	list_numbers_release(&q->list);
}

static json_t *make_numbers(void *owner)
{
	struct numbers_request *q = owner;

	if (q->about.accelerator->level == LEVEL_1) {
		list_numbers_release(&q->list);
		q->list.has_more = false;
	}
	return numbers_json(&q->list, q->days);
}

static void numbers_done(struct store_query *sq)
{
	struct numbers_request *q = CONTAINER_OF(sq, struct numbers_request, list.q);
	size_t n = 0;

	if (!web_read_goes_on(q, sq->err, NO_ACCELERATOR))
		return;
	for (size_t i = 0; i < q->list.n; i++)
		n += q->list.list[i].n + 1;
	web_read_render(q, make_numbers, n);
}

void web_on_accelerator_numbers(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	struct web *w = owner;
	struct numbers_request *q = about_new(w, r, sizeof(*q), release_numbers);
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
	if (params_refuse(&p)) {
		web_read_free(q);
		return;
	}
	q->list.accelerator = q->about.accelerator->name;
	q->list.after_unit = q->after_unit;
	q->list.since_ms = clock_wall_ms() - (q->days - 1) * 86400000;
	q->list.q.done = numbers_done;
	(void)web_read_goes_on(q, store_list_numbers(w->deps.store, &q->list), NULL);
}

/* ---- the dashboard ---- */

/* The work for a row of the dashboard, in entries of other answers: it has 60 days. */
enum { ITEMS_PER_ROW = 60 };

struct dashboard_request {
	struct web_read read;
	struct get_dashboard get;
};

static void release_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	dashboard_free(q->get.view);
}

static json_t *make_dashboard(void *owner)
{
	struct dashboard_request *q = owner;

	return dashboard_json(q->get.view, q->get.repository, q->get.branch, q->read.config->public_url);
}

static void dashboard_done(struct store_query *sq)
{
	struct dashboard_request *q = CONTAINER_OF(sq, struct dashboard_request, get.q);

	if (web_read_goes_on(q, sq->err, "no dashboard"))
		web_read_render(q, make_dashboard, q->get.view->n_rows * ITEMS_PER_ROW);
}

void web_on_dashboard(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct dashboard_request *q = web_read_new(w, r, sizeof(*q), release_dashboard);

	if (!q)
		return;
	q->get.repository = q->read.config->upstream_repository;
	/* "": no branch is configured, so no push is a change */
	q->get.branch = q->read.config->upstream_branches[0] ? q->read.config->upstream_branches[0] : "";
	q->get.now_ms = clock_wall_ms();
	q->get.q.done = dashboard_done;
	(void)web_read_goes_on(q, store_get_dashboard(w->deps.store, &q->get), NULL);
}

/* ---- the level status, in the format of PyTorch's HUD (pytorch/test-infra, torchci/pages/api/crcr/level-status.ts), so
 * that programs that read HUD's can read this one ---- */

struct level_status_request {
	struct web_read read;
	struct list_level_status list;
};

static void release_level_status(void *owner)
{
	struct level_status_request *s = owner;

	list_level_status_release(&s->list);
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
	/* The labels of HUD's page. */
	static const char *const labels[N_CRITERIA] = {
	    [CRITERION_END_TO_END] = "End-to-End Time (P50)",
	    [CRITERION_TIMEOUT] = "Timeout Rate",
	    [CRITERION_PASS] = "Job Pass Rate",
	};
	const char *label = labels[f->criterion];
	char *measured, *amount;
	json_t *v;

	if (!f->has_measure)
		measured = xstrdup("\xe2\x80\x93");
	else if (f->unit == UNIT_SHARE)
		measured = xasprintf("%.1f%%", f->measured * 100);
	else
		measured = seconds_text(f->measured);
	amount = f->unit == UNIT_SHARE ? xasprintf("%.3g%%", f->target * 100) : seconds_text(f->target);
	v = json_pack("{s:s, s:s, s:o, s:o}", "criterion", label ? label : level_criterion_name(f->criterion),
	    "measured", measured, "target", json_sprintf("%s %s", f->is_at_least ? "\xe2\x89\xa5" : "<", amount), "met",
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
	return json_pack("{s:s?, s:s, s:s?, s:b, s:i, s:o, s:s, s:I, s:I, s:o}", "repo", one->repository, "level",
	    level_name(LEVEL_3), "change", p.level < LEVEL_3 ? "demote" : NULL, "noData", p.is_silent, "windowDays",
	    (int)DEMOTION_DAYS, "criteria", criteria, "accelerator", one->accelerator, "jobs", (json_int_t)w->n_jobs,
	    "failedUpstream", (json_int_t)w->n_upstream, "passRateWithUpstream", share_json(w->n_passed, w->n_jobs));
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
