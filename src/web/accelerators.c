/* /api/v1/accelerators: all of them with their figures; and one with its page, its jobs and its numbers. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "history/days.h"
#include "store/registry.h"
#include "views/accelerator.h"
#include "views/accelerator_page.h"
#include "web/answer.h"
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

static void figures_request_free(struct figures_request *f)
{
	get_figures_release(&f->get);
	config_unref(f->config);
	free(f);
}

static const struct accelerator_figures *find_figures(
    const struct get_figures *get, const char *name)
{
	for (size_t i = 0; i < get->n; i++)
		if (str_eq(get->list[i].name, name))
			return &get->list[i];
	return NULL;
}

static json_t *accelerators_json(const struct config *c, const struct get_figures *get)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		json_array_append_new(list, accelerator_json(c, a, find_figures(get, a->name)));
	}
	return list;
}

static void figures_done(struct store_query *q)
{
	struct figures_request *f = CONTAINER_OF(q, struct figures_request, get.q);
	json_t *list;

	if (f->on_json) {
		f->on_json(q->err, q->err ? NULL : accelerators_json(f->config, &f->get), f->owner);
		figures_request_free(f);
		return;
	}
	if (q->err) {
		web_respond_failed(f->request, q->err, "no accelerators");
	} else {
		list = accelerators_json(f->config, &f->get);
		web_respond_json(f->request, 200, json_pack("{s:o}", "accelerators", list));
	}
	figures_request_free(f);
}

void web_accelerators(struct web *w, void (*done)(int err, json_t *list, void *owner), void *owner)
{
	struct figures_request *f;
	int rc;

	if (!w->config) {
		done(ERR_BUSY, NULL, owner);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->on_json = done;
	f->owner = owner;
	f->config = config_ref(w->config);
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	rc = store_get_figures(w->deps.store, &f->get);
	if (rc) {
		figures_request_free(f);
		done(rc, NULL, owner);
	}
}

static void on_accelerators(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct figures_request *f;

	if (!w->config) {
		web_respond_busy(r);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->request = r;
	f->config = config_ref(w->config);
	f->get.now_ms = clock_wall_ms();
	f->get.q.done = figures_done;
	if (store_get_figures(w->deps.store, &f->get)) {
		web_respond_busy(r);
		figures_request_free(f);
	}
}

/* ---- one ---- */

enum { LIMIT_JOBS = 50, LIMIT_NUMBERS = 20, DAYS_NUMBERS = 90, DAYS_NUMBERS_MAX = 800 };

/* The common part of each request about one accelerator. */
struct about {
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config;                 /* as of the request */
	const struct accelerator *accelerator; /* the config's */
};

/* Returns false after it has answered the request. */
static bool has_accelerator(struct web *w, struct http_request *r)
{
	if (!w->config)
		web_respond_busy(r);
	else if (!config_accelerator(w->config, http_segment(r, 0)))
		web_respond_not_found(r, "no such accelerator");
	else
		return true;
	return false;
}

static void about_init(struct about *a, struct web *w, struct http_request *r)
{
	a->loop = w->deps.loop;
	a->request = r;
	a->config = config_ref(w->config);
	a->accelerator = config_accelerator(a->config, http_segment(r, 0));
}

static void render_accelerator(
    struct about *a, json_t *(*make)(void *), void (*over)(void *), void *owner, size_t n_items)
{
	a->render =
	    (struct web_render){.make = make, .over = over, .owner = owner, .request = a->request};
	web_render(a->loop, &a->render, n_items);
}

/* ---- the page ---- */

struct page_request {
	struct about about;
	struct get_accelerator_page get;
};

static void page_request_free(void *p)
{
	struct page_request *q = p;

	get_accelerator_page_release(&q->get);
	config_unref(q->about.config);
	free(q);
}

static json_t *make_page(void *owner)
{
	struct page_request *q = owner;

	return accelerator_page_json(q->about.config, q->about.accelerator, &q->get);
}

static void page_done(struct store_query *sq)
{
	struct page_request *q = CONTAINER_OF(sq, struct page_request, get.q);

	if (sq->err) {
		web_respond_failed(q->about.request, sq->err, "no such accelerator");
		page_request_free(q);
		return;
	}
	render_accelerator(
	    &q->about, make_page, page_request_free, q, PAGE_TREND_DAYS + PAGE_CALENDAR_DAYS);
}

static void on_page(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct page_request *q;

	if (!has_accelerator(w, r))
		return;
	q = xcalloc(1, sizeof(*q));
	about_init(&q->about, w, r);
	q->get.name = q->about.accelerator->name;
	q->get.now_ms = clock_wall_ms();
	q->get.q.done = page_done;
	if (store_get_accelerator_page(w->deps.store, &q->get)) {
		web_respond_busy(r);
		page_request_free(q);
	}
}

/* ---- jobs ---- */

struct jobs_request {
	struct about about;
	struct list_accelerator_jobs list;
};

static void jobs_request_free(void *p)
{
	struct jobs_request *q = p;

	page_jobs_release(&q->list.jobs);
	config_unref(q->about.config);
	free(q);
}

static json_t *make_jobs(void *owner)
{
	struct jobs_request *q = owner;

	if (q->about.accelerator->level == LEVEL_1)
		page_jobs_release(&q->list.jobs);
	return json_pack("{s:o, s:o}", "jobs",
	    page_jobs_json(&q->list.jobs, q->about.config->public_url), "next",
	    page_jobs_next(&q->list.jobs));
}

static void jobs_done(struct store_query *sq)
{
	struct jobs_request *q = CONTAINER_OF(sq, struct jobs_request, list.q);

	if (sq->err) {
		web_respond_failed(q->about.request, sq->err, "no such accelerator");
		jobs_request_free(q);
		return;
	}
	render_accelerator(&q->about, make_jobs, jobs_request_free, q, q->list.jobs.n);
}

/* The cursor is the last job of the page before. */
static int64_t read_job_cursor(struct params *p)
{
	char text[32];
	int64_t id = 0;

	if (params_cursor(p, text, sizeof(text)) && (parse_int64(text, &id) || id <= 0))
		params_wrong(p, "cursor", "not a value of \"next\" in an answer");
	return id;
}

static void on_jobs(struct http_request *r, void *owner)
{
	struct params p = PARAMS_INIT(r);
	struct web *w = owner;
	struct jobs_request *q;
	int64_t limit, before_id;

	if (!has_accelerator(w, r))
		return;
	limit = params_limit(&p, LIMIT_JOBS);
	before_id = read_job_cursor(&p);
	if (params_refuse(&p))
		return;
	q = xcalloc(1, sizeof(*q));
	about_init(&q->about, w, r);
	q->list.accelerator = q->about.accelerator->name;
	q->list.before_id = before_id;
	q->list.limit = (int)limit;
	q->list.q.done = jobs_done;
	if (store_list_accelerator_jobs(w->deps.store, &q->list)) {
		web_respond_busy(r);
		jobs_request_free(q);
	}
}

/* ---- numbers ---- */

struct numbers_request {
	struct about about;
	struct list_numbers list;
	int64_t days;
	char after_unit[REPORT_UNIT_MAX_BYTES + 1];
};

static void numbers_request_free(void *p)
{
	struct numbers_request *q = p;

	list_numbers_release(&q->list);
	config_unref(q->about.config);
	free(q);
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

	if (sq->err) {
		web_respond_failed(q->about.request, sq->err, "no such accelerator");
		numbers_request_free(q);
		return;
	}
	for (size_t i = 0; i < q->list.n; i++)
		n += q->list.list[i].n + 1;
	render_accelerator(&q->about, make_numbers, numbers_request_free, q, n);
}

/* "TEST UNIT": the last line of the page before. */
static void read_number_cursor(struct params *p, struct numbers_request *q)
{
	char text[32 + REPORT_UNIT_MAX_BYTES + 1], *unit;

	if (!params_cursor(p, text, sizeof(text)))
		return;
	unit = strchr(text, ' ');
	if (unit)
		*unit++ = '\0';
	if (!unit || strlen(unit) > REPORT_UNIT_MAX_BYTES ||
	    parse_int64(text, &q->list.after_test) || q->list.after_test <= 0) {
		params_wrong(p, "cursor", "not a value of \"next\" in an answer");
		return;
	}
	snprintf(q->after_unit, sizeof(q->after_unit), "%s", unit);
}

static void on_numbers(struct http_request *r, void *owner)
{
	struct params p = PARAMS_INIT(r);
	struct web *w = owner;
	struct numbers_request *q;

	if (!has_accelerator(w, r))
		return;
	q = xcalloc(1, sizeof(*q));
	about_init(&q->about, w, r);
	q->days = params_int(&p, "days", 1, DAYS_NUMBERS_MAX, DAYS_NUMBERS);
	q->list.limit = (int)params_limit(&p, LIMIT_NUMBERS);
	read_number_cursor(&p, q);
	if (params_refuse(&p)) {
		numbers_request_free(q);
		return;
	}
	q->list.accelerator = q->about.accelerator->name;
	q->list.after_unit = q->after_unit;
	q->list.since_ms = clock_wall_ms() - (q->days - 1) * 86400000;
	q->list.q.done = numbers_done;
	if (store_list_numbers(w->deps.store, &q->list)) {
		web_respond_busy(r);
		numbers_request_free(q);
	}
}

void web_add_accelerator_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/accelerators", NULL, on_accelerators);
	web_add_resource(w, "/api/v1/accelerators/{name}", "/accelerators/{name}", on_page);
	web_add_resource(w, "/api/v1/accelerators/{name}/jobs", NULL, on_jobs);
	web_add_resource(w, "/api/v1/accelerators/{name}/numbers", NULL, on_numbers);
}
