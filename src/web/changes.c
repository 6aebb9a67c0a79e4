/* /api/v1/pulls/{n} and /api/v1/commits/{sha}: one change with every verdict. */
#include "store/changes.h"
#include "base/alloc.h"
#include "base/str.h"
#include "report/change_json.h"
#include "web/params.h"
#include "web/render.h"
#include "web/web_internal.h"

struct change_request {
	struct get_change get;
	struct web_render render;
	struct loop *loop;
	struct http_request *request;
	struct config *config; /* as of the request */
	char *head_sha;
	struct verdict_choice choice; /* after: into cursor */
	char cursor[CURSOR_BYTES];
};

static void change_request_free(void *p)
{
	struct change_request *c = p;

	change_view_free(c->get.view);
	config_unref(c->config);
	free(c->head_sha);
	free(c);
}

static json_t *make_change(void *owner)
{
	struct change_request *c = owner;
	json_t *v = change_json(c->get.view, c->config->public_url, &c->choice);

	change_view_free(c->get.view); /* here: it takes its time too */
	c->get.view = NULL;
	return v;
}

static void change_done(struct store_query *q)
{
	struct change_request *c = CONTAINER_OF(q, struct change_request, get.q);

	if (q->err) {
		web_respond_failed(
		    c->request, q->err, c->get.number ? "no such pull request" : "no such commit");
		change_request_free(c);
		return;
	}
	c->render = (struct web_render){
	    .make = make_change, .over = change_request_free, .owner = c, .request = c->request};
	web_render(c->loop, &c->render, c->get.view->n_verdicts);
}

/* attribution=red: any of them. */
static void read_choice(struct params *p, struct change_request *c)
{
	const char *kinds[N_CHANGE_KINDS + 1] = {NULL};
	const char *statuses[N_TEST_STATUSES + 1] = {NULL};
	const char *attributions[N_ATTRIBUTIONS + 2] = {NULL};

	for (int i = 0; i < N_TEST_STATUSES; i++)
		statuses[i] = test_status_name((enum test_status)i);
	for (int i = 0; i < N_ATTRIBUTIONS; i++)
		attributions[i] = attribution_name((enum attribution)i);
	attributions[N_ATTRIBUTIONS] = "red";
	for (int i = 0; i < N_CHANGE_KINDS; i++)
		kinds[i] = change_kind_name((enum change_kind)i);
	c->get.kinds = c->get.number ? 0 : params_words(p, "kind", kinds);
	c->choice.limit = (size_t)params_limit(p, 0);
	c->choice.statuses = params_words(p, "status", statuses);
	c->choice.attributions = params_words(p, "attribution", attributions);
	if (c->choice.attributions >> N_ATTRIBUTIONS & 1)
		c->choice.attributions = (1U << N_ATTRIBUTIONS) - 1;
	c->choice.after = c->cursor;
	c->choice.after_bytes = params_cursor(p, c->cursor, sizeof(c->cursor));
}

static void start(struct web *w, struct http_request *r, int64_t number, const char *sha)
{
	struct change_request *c = xcalloc(1, sizeof(*c));
	struct params p = PARAMS_INIT(r);

	c->loop = w->deps.loop;
	c->request = r;
	c->config = config_ref(w->config);
	c->head_sha = xstrdup_or_null(sha);
	c->get.repository = c->config->upstream_repository;
	c->get.number = number;
	c->get.head_sha = c->head_sha;
	c->get.q.done = change_done;
	read_choice(&p, c);
	if (params_refuse(&p)) {
		change_request_free(c);
		return;
	}
	if (store_get_change(w->deps.store, &c->get)) {
		web_respond_busy(r);
		change_request_free(c);
	}
}

static void on_pull(struct http_request *r, void *owner)
{
	struct web *w = owner;
	int64_t number;

	if (!w->config)
		web_respond_busy(r);
	else if (parse_int64(http_segment(r, 0), &number) || number <= 0)
		web_respond_not_found(r, "no such pull request");
	else
		start(w, r, number, NULL);
}

static void on_commit(struct http_request *r, void *owner)
{
	struct web *w = owner;

	if (!w->config)
		web_respond_busy(r);
	else if (!is_sha1(http_segment(r, 0)))
		web_respond_not_found(r, "no such commit");
	else
		start(w, r, 0, http_segment(r, 0));
}

void web_add_change_routes(struct web *w)
{
	web_add_resource(w, "/api/v1/pulls/{n}", "/pulls/{n}", on_pull);
	web_add_resource(w, "/api/v1/commits/{sha}", "/commits/{sha}", on_commit);
	web_set_page_limit(w, "/pulls/{n}", PARAMS_LIMIT_MAX);
	web_set_page_limit(w, "/commits/{sha}", PARAMS_LIMIT_MAX);
}
