/* /api/v1/pulls/{n} and /api/v1/commits/{sha}: one change with every verdict. /api/v1/known: the issues that explain red tests. */
#include "store/changes.h"
#include "views/change.h"
#include "web/params.h"
#include "web/web_internal.h"

struct change_request {
	struct web_read read;
	struct get_change get;
	char *head_sha;
	struct verdict_choice choice; /* `after` points into cursor */
	char cursor[CURSOR_BYTES];
};

static void release_change(void *owner)
{
	struct change_request *c = owner;

	change_view_free(c->get.view);
	free(c->head_sha);
}

static size_t count_change(const void *c) { return ((const struct change_request *)c)->get.view->n_verdicts; }

static char *make_change(void *owner)
{
	struct change_request *c = owner;
	char *text = change_json(c->get.view, c->read.config->public_url, &c->choice);

	change_view_free(c->get.view); /* here, because this takes long too */
	c->get.view = NULL;
	return text;
}

static const struct web_read_kind CHANGE = {
    sizeof(struct change_request), release_change, .make_text = make_change, .n_items = count_change};

static const char NO_PULL[] = "no such pull request", NO_COMMIT[] = "no such commit";

/* attribution=red means any attribution. */
static void read_change_choice(struct params *p, struct change_request *c)
{
	const char *names[N_ATTRIBUTIONS + 1];

	memcpy(names, attribution_words.names, N_ATTRIBUTIONS * sizeof(*names));
	names[N_ATTRIBUTIONS] = "red";
	c->get.kinds = c->get.number ? 0 : params_words(p, "kind", &change_kind_words);
	c->choice.limit = (size_t)params_limit(p, 0);
	c->choice.statuses = params_words(p, "status", &test_status_words);
	c->choice.attributions = params_words(p, "attribution", &(struct words){names, N_ATTRIBUTIONS + 1});
	if (c->choice.attributions >> N_ATTRIBUTIONS & 1)
		c->choice.attributions = (1U << N_ATTRIBUTIONS) - 1;
	c->choice.after = c->cursor;
	c->choice.after_bytes = params_cursor(p, c->cursor, sizeof(c->cursor));
}

static void start_change(struct web *w, struct http_request *r, int64_t number, const char *sha)
{
	struct change_request *c = web_read_new(w, r, &CHANGE);
	struct params p = {.r = r};

	if (!c)
		return;
	c->head_sha = xstrdup_or_null(sha);
	c->get.repository = c->read.config->upstream_repository;
	c->get.number = number;
	c->get.head_sha = c->head_sha;
	c->get.now_ms = clock_wall_ms();
	c->read.not_found = number ? NO_PULL : NO_COMMIT;
	read_change_choice(&p, c);
	c->get.choice = &c->choice;
	if (!params_refuse_read(&p, c))
		web_read_await(c, store_get_change(c->read.store, &c->get));
}

void web_on_pull(struct http_request *r, void *owner)
{
	const struct web *w = owner;
	int64_t number = 0;

	if (w->config && (parse_int64(http_segment(r, 0), &number) || number <= 0))
		web_respond_not_found(r, NO_PULL);
	else
		start_change(owner, r, number, NULL);
}

void web_on_commit(struct http_request *r, void *owner)
{
	const struct web *w = owner;

	if (w->config && !is_sha1(http_segment(r, 0)))
		web_respond_not_found(r, NO_COMMIT);
	else
		start_change(owner, r, 0, http_segment(r, 0));
}

/* ---- known issues ---- */

json_t *web_known_json(const struct list_known *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct known_issue *k = &l->list[i];

		json_array_append_new(
		    list, json_pack("{s:I, s:o, s:o, s:o, s:o, s:b, s:o, s:I, s:o, s:b}", "id", (json_int_t)k->id,
			      "test", json_foreign_text(k->pattern), "accelerator", json_foreign_text(k->accelerator),
			      "url", json_foreign_text(k->url), "until", json_time(k->until_ms), "expired",
			      k->until_ms && k->until_ms <= l->now_ms, "created", json_time(k->created_ms), "matches",
			      (json_int_t)k->n_matches, "last_match", json_time(k->last_match_ms), "used", k->is_used));
	}
	return json_pack("{s:o}", "known", list);
}

struct known_request {
	struct web_read read;
	struct list_known list;
};

static void release_known(void *k) { list_known_release(&((struct known_request *)k)->list); }

static json_t *make_known(void *k) { return web_known_json(&((struct known_request *)k)->list); }

static size_t count_known(const void *k) { return ((const struct known_request *)k)->list.n; }

static const struct web_read_kind KNOWN = {
    sizeof(struct known_request), release_known, .make = make_known, .n_items = count_known};

void web_on_known(struct http_request *r, void *owner)
{
	struct known_request *k = web_read_new(owner, r, &KNOWN);

	if (!k)
		return;
	k->list.now_ms = clock_wall_ms();
	web_read_await(k, store_list_known(k->read.store, &k->list));
}
