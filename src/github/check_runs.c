/* Check runs on GitHub's side. Only Apps write them, and each sees to its own: the list asks for
 * those of this App, by its id, because others may use the same names. */
#include <assert.h>

#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

enum {
	PER_PAGE = 100,
	PAGES_MAX = 20, /* far more jobs than accelerators have */
	LIST_BYTES_MAX = 32 * 1024 * 1024,
};

/* ---- writing ---- */

static json_t *annotation_json(const struct github_annotation *a)
{
	json_t *o = json_object();

	json_set_str(o, "path", a->path);
	json_object_set_new(o, "start_line", json_integer(a->line));
	json_object_set_new(o, "end_line", json_integer(a->line));
	json_set_str(o, "annotation_level", a->level);
	json_set_str(o, "title", a->title);
	json_set_str(o, "message", a->message);
	return o;
}

static json_t *output_json(const struct github_check *c)
{
	json_t *o = json_object();

	json_set_str(o, "title", c->title);
	json_set_str(o, "summary", c->summary);
	if (c->text)
		json_set_str(o, "text", c->text);
	if (c->n_annotations > 0) {
		json_t *list = json_array();

		for (size_t i = 0; i < c->n_annotations; i++)
			json_array_append_new(list, annotation_json(&c->annotations[i]));
		json_object_set_new(o, "annotations", list);
	}
	return o;
}

/* Without head_sha and name it is an update's. */
static char *body_of(const struct github_check *c, bool is_new)
{
	json_t *o = json_object();
	char *body;

	assert(c->n_annotations <= GITHUB_ANNOTATIONS_MAX);
	if (is_new)
		json_set_str(o, "head_sha", c->head_sha);
	json_set_str(o, "name", c->name);
	if (c->external_id)
		json_set_str(o, "external_id", c->external_id);
	if (c->details_url)
		json_set_str(o, "details_url", c->details_url);
	json_set_str(o, "status", c->conclusion ? "completed" : "in_progress");
	if (c->conclusion)
		json_set_str(o, "conclusion", c->conclusion);
	json_object_set_new(o, "output", output_json(c));
	body = json_text(o);
	json_decref(o);
	return body;
}

void github_check_create(struct github *g, struct github_call *call, const char *repository,
    const struct github_check *check)
{
	if (!request_has_repository(g, call, repository, "check run"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_CHECKS,
		.kind = BUDGET_CONTENT,
		.what = "new check run",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/check-runs", repository),
		.own_body = body_of(check, true),
		.answer = ANSWER_OBJECT,
	    });
}

void github_check_update(struct github *g, struct github_call *call, const char *repository,
    int64_t check_id, const struct github_check *check)
{
	if (!request_has_repository(g, call, repository, "check run"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_CHECKS,
		.kind = BUDGET_CONTENT,
		.what = "check run's new state",
		.repository = repository,
		.method = "PATCH",
		.path = xasprintf("/repos/%s/check-runs/%lld", repository, (long long)check_id),
		.own_body = body_of(check, false),
		.answer = ANSWER_OBJECT,
	    });
}

/* ---- reading back ---- */

static char *list_path(const struct request *r)
{
	return xasprintf("/repos/%s/commits/%s/check-runs?app_id=%lld&filter=latest&per_page=%d"
			 "&page=%d",
	    r->repository, r->spec.text, (long long)r->g->app_id, PER_PAGE, r->spec.page);
}

static void add_check(struct github_check_list *l, const json_t *run)
{
	const char *name = json_get_str(run, "name");
	const char *external_id = json_get_str(run, "external_id");
	int64_t id = json_get_int(run, "id", 0);

	if (!name || id <= 0)
		return;
	l->list = xrealloc(l->list, (l->n + 1) * sizeof(*l->list));
	l->list[l->n++] = (struct github_listed_check){.id = id,
	    .name = xstrdup(name),
	    .external_id = xstrdup(external_id ? external_id : ""),
	    .n_annotations = json_get_int(json_object_get(run, "output"), "annotations_count", 0)};
}

static bool on_list(struct request *r)
{
	struct github_check_list *l = CONTAINER_OF(r->call, struct github_check_list, call);
	char next[2048];
	json_t *run;
	size_t i;

	json_array_foreach(json_object_get(r->call->answer, "check_runs"), i, run)
	    add_check(l, run);
	github_call_release(r->call);
	if (r->spec.page >= PAGES_MAX || !pages_next_url(r, next, sizeof(next)))
		return true;
	r->spec.page++;
	request_go_to(r, list_path(r));
	return false;
}

void github_checks_list(
    struct github *g, struct github_check_list *list, const char *repository, const char *head_sha)
{
	struct request_spec spec = {
	    .access = ACCESS_CHECKS,
	    .what = "listing check runs",
	    .repository = repository,
	    .method = "GET",
	    .max_answer_bytes = LIST_BYTES_MAX,
	    .answer = ANSWER_OBJECT,
	    .on_answer = on_list,
	    .page = 1,
	};

	github_check_list_release(list);
	if (!request_has_repository(g, &list->call, repository, "check run"))
		return;
	if (!is_sha1(head_sha)) {
		request_refuse(g, &list->call, "check run: not a commit");
		return;
	}
	spec.text = xstrdup(head_sha);
	spec.path = xasprintf("/repos/%s/commits/%s/check-runs?app_id=%lld&filter=latest"
			      "&per_page=%d&page=1",
	    repository, head_sha, (long long)g->app_id, PER_PAGE);
	request_start(g, &list->call, &spec);
}

void github_check_list_release(struct github_check_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->list[i].name);
		free(list->list[i].external_id);
	}
	FREE_AND_NULL(list->list);
	list->n = 0;
	github_call_release(&list->call);
}
