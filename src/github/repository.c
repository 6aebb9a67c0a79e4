/* One repository: reads pull requests, branches and the commits between two of them; starts and repeats vendors' workflows
 * (dispatches, re-runs); and writes check runs. Another App may use the same names of check runs, so the list filters by the
 * App's id. */

#include "github/github_internal.h"

enum {
	PULLS_PER_PAGE = 50, /* about 25 KB of JSON each, which is parsed on the loop */
	FILES_PER_PAGE = 100,
	FILES_MAX = 3000, /* GitHub lists no more */
	LIST_BYTES_MAX = 32 * 1024 * 1024,
	NAME_BYTES_MAX = 250, /* of a branch or commit */
	CHECKS_PER_PAGE = 100,
	CHECK_PAGES_MAX = 20, /* far more jobs than accelerators have */
};

static int bad_answer(struct request *r, const char *what)
{
	return error_set(&r->call->result.why, ERR_PROTOCOL, "%s: %s", r->repository, what);
}

/* ---- pull requests ---- */

void github_pull_get(struct github *g, struct github_call *call, const char *repository, int64_t number)
{
	request_start(g, call,
	    &(struct request_spec){.access = ACCESS_READ,
		.what = "reading a pull request",
		.repository = repository,
		.path = xasprintf("/repos/%s/pulls/%lld", repository, (long long)number),
		.answer = ANSWER_OBJECT});
}

static enum request_next on_pulls(struct request *r)
{
	struct github_page *p = CONTAINER_OF(r->call, struct github_page, call);

	if (answer_has_next(r))
		p->next_page = r->spec.page + 1;
	return REQUEST_DONE;
}

void github_pulls_open(struct github *g, struct github_page *page, const char *repository)
{
	page->next_page = 0;
	request_start(g, &page->call,
	    &(struct request_spec){.access = ACCESS_READ,
		.what = "listing pull requests",
		.repository = repository,
		.path = xasprintf(
		    "/repos/%s/pulls?state=open&sort=updated&direction=desc&per_page=%d", repository, PULLS_PER_PAGE),
		.page = page->page > 0 ? page->page : 1,
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_pulls});
}

static void add_file_name(struct github_pull_files *f, const char *name)
{
	if (!name)
		return;
	*ARRAY_PUSH(f->names, f->n_names) = xstrdup(name);
	*ARRAY_PUSH(f->names, f->n_names) = NULL; /* ends the list, and is not counted */
	f->n_names--;
}

static enum request_next on_files(struct request *r)
{
	struct github_pull_files *f = CONTAINER_OF(r->call, struct github_pull_files, call);
	size_t i, n_listed = (size_t)(r->spec.page - 1) * FILES_PER_PAGE;
	bool has_next = answer_has_next(r);
	json_t *file;

	json_array_foreach(r->call->answer, i, file)
	{
		add_file_name(f, json_get_str(file, "filename"));
		add_file_name(f, json_get_str(file, "previous_filename"));
	}
	enum request_next next = request_next_page(r, FILES_MAX / FILES_PER_PAGE);
	f->is_incomplete = next == REQUEST_DONE && (has_next || n_listed + i >= FILES_MAX);
	return next;
}

void github_pull_files_get(struct github *g, struct github_pull_files *files, const char *repository, int64_t number)
{
	github_pull_files_release(files);
	files->names = xcalloc(1, sizeof(*files->names));
	request_start(g, &files->call,
	    &(struct request_spec){.access = ACCESS_READ,
		.what = "listing a pull request's files",
		.repository = repository,
		.path =
		    xasprintf("/repos/%s/pulls/%lld/files?per_page=%d", repository, (long long)number, FILES_PER_PAGE),
		.page = 1,
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_files});
}

void github_pull_files_release(struct github_pull_files *files)
{
	for (size_t i = 0; i < files->n_names; i++)
		free(files->names[i]);
	FREE_AND_NULL(files->names);
	files->n_names = 0;
	files->is_incomplete = false;
	github_call_release(&files->call);
}

/* ---- branches and commits ---- */

/* A name inside a path. free(). */
static char *path_encode(const char *s)
{
	struct buf out = BUF_INIT(4 * NAME_BYTES_MAX);

	percent_encode(&out, s, strlen(s), "");
	return buf_detach(&out);
}

static bool is_ref_name(const char *s) { return *s && strlen(s) <= NAME_BYTES_MAX; }

static enum request_next on_branch(struct request *r)
{
	struct github_branch *b = CONTAINER_OF(r->call, struct github_branch, call);
	const char *sha = json_get_str(json_object_get(r->call->answer, "commit"), "sha");

	if (r->http.status == 304) {
		b->is_unchanged = true;
		return REQUEST_DONE;
	}
	if (!sha || !is_sha1(sha)) {
		r->call->result.err = bad_answer(r, "GitHub's branch has no commit");
		return REQUEST_DONE;
	}
	memcpy(b->sha, sha, sizeof(b->sha));
	if (!http_call_header(&r->http, "ETag", b->etag, sizeof(b->etag)))
		b->etag[0] = '\0';
	return REQUEST_DONE;
}

void github_branch_get(struct github *g, struct github_branch *branch, const char *repository, const char *name)
{
	branch->is_unchanged = false;
	if (!is_ref_name(name)) {
		request_refuse(g, &branch->call, "branch: not the name of a branch");
		return;
	}
	char *encoded = path_encode(name);
	request_start(g, &branch->call,
	    &(struct request_spec){.access = ACCESS_READ,
		.what = "reading a branch",
		.repository = repository,
		.path = xasprintf("/repos/%s/branches/%s", repository, encoded),
		.etag = branch->etag[0] ? xstrdup(branch->etag) : NULL,
		.answer = ANSWER_OBJECT,
		.on_answer = on_branch});
	free(encoded);
}

/* Takes spec with repository, max_answer_bytes and on_answer, and compares base and head. */
static void compare_start(struct github *g, struct github_call *call, struct request_spec spec, const char *base,
    const char *head, const char *query)
{
	char *from, *to;

	if (!is_ref_name(base) || !is_ref_name(head)) {
		request_refuse(g, call, "compare: not the name of a commit or branch");
		return;
	}
	from = path_encode(base);
	to = path_encode(head);
	spec.access = ACCESS_READ;
	spec.what = "comparing commits";
	spec.path = xasprintf("/repos/%s/compare/%s...%s?%s", spec.repository, from, to, query);
	spec.answer = ANSWER_OBJECT;
	request_start(g, call, &spec);
	FREE_ALL(from, to);
}

static enum request_next on_compare(struct request *r)
{
	struct github_compare *c = CONTAINER_OF(r->call, struct github_compare, call);
	const json_t *base = json_object_get(r->call->answer, "merge_base_commit");
	const char *sha = json_get_str(base, "sha");
	const char *date = json_get_str(json_at(base, "commit", "committer", NULL), "date");

	if (!sha || !is_sha1(sha)) {
		r->call->result.err = bad_answer(r, "GitHub's comparison names no merge base");
		return REQUEST_DONE;
	}
	memcpy(c->merge_base_sha, sha, sizeof(c->merge_base_sha));
	if (!date || rfc3339_parse(date, &c->merge_base_wall_ms))
		c->merge_base_wall_ms = 0;
	return REQUEST_DONE;
}

void github_compare_get(
    struct github *g, struct github_compare *compare, const char *repository, const char *base, const char *head)
{
	struct request_spec spec = {.repository = repository, .on_answer = on_compare};

	compare->merge_base_sha[0] = '\0';
	compare->merge_base_wall_ms = 0;
	/* Page 2: only the first page lists the files with their patches, which are not needed. */
	compare_start(g, &compare->call, spec, base, head, "per_page=1&page=2");
}

static enum request_next on_commits(struct request *r)
{
	struct github_commits *c = CONTAINER_OF(r->call, struct github_commits, call);
	const json_t *answer = r->call->answer;
	int64_t n = (int64_t)json_array_size(json_object_get(answer, "commits"));

	c->is_complete = n > 0 && json_get_int(answer, "total_commits", -1) == n;
	c->is_ahead = str_eq(json_get_str(answer, "status"), "ahead");
	return REQUEST_DONE;
}

void github_commits_between(
    struct github *g, struct github_commits *commits, const char *repository, const char *base, const char *head)
{
	struct request_spec spec = {
	    .repository = repository,
	    .max_answer_bytes = LIST_BYTES_MAX, /* it includes the files */
	    .on_answer = on_commits,
	};

	commits->is_complete = commits->is_ahead = false;
	compare_start(g, &commits->call, spec, base, head, "per_page=250");
}

/* ---- dispatches and re-runs ---- */

void github_dispatch(
    struct github *g, struct github_call *call, const char *repository, const char *body, size_t body_bytes)
{
	request_start(g, call,
	    &(struct request_spec){.access = ACCESS_DISPATCH,
		.what = "dispatch",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/dispatches", repository),
		.body = body,
		.body_bytes = body_bytes,
		.if_not_found = "the App is not installed on it, or may not write its contents"});
}

void github_run_again(
    struct github *g, struct github_call *call, const char *repository, const char *run_id, enum github_rerun what)
{
	static const char *const verbs[] = {[GITHUB_RERUN_FAILED] = "rerun-failed-jobs", [GITHUB_RERUN_ALL] = "rerun"};
	size_t n_digits = strspn(run_id, "0123456789");

	if (n_digits == 0 || n_digits >= 20 || run_id[n_digits]) {
		request_refuse(g, call, "re-run: not the number of a run");
		return;
	}
	request_start(g, call,
	    &(struct request_spec){.access = ACCESS_ACTIONS,
		.what = "re-run",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/actions/runs/%s/%s", repository, run_id, verbs[what])});
}

/* ---- check runs ---- */

/* head_sha: NULL in an update, because a check run keeps its commit. */
static json_t *check_json(const struct github_check *c, const char *head_sha)
{
	json_t *o = json_object(), *output = json_object(), *list = json_array();

	assert(c->n_annotations <= GITHUB_ANNOTATIONS_MAX);
	if (head_sha)
		json_set_str(o, "head_sha", head_sha);
	json_set_str(o, "name", c->name);
	if (c->external_id)
		json_set_str(o, "external_id", c->external_id);
	if (c->details_url)
		json_set_str(o, "details_url", c->details_url);
	json_set_str(o, "status", c->conclusion ? "completed" : "in_progress");
	if (c->conclusion)
		json_set_str(o, "conclusion", c->conclusion);
	json_set_str(output, "title", c->title);
	json_set_str(output, "summary", c->summary);
	if (c->text)
		json_set_str(output, "text", c->text);
	for (size_t i = 0; i < c->n_annotations; i++) {
		const struct github_annotation *a = &c->annotations[i];
		json_t *v = json_object();

		json_set_str(v, "path", a->path);
		json_set_int(v, "start_line", a->line);
		json_set_int(v, "end_line", a->line);
		json_set_str(v, "annotation_level", a->level);
		json_set_str(v, "title", a->title);
		json_set_str(v, "message", a->message);
		json_array_append_new(list, v);
	}
	if (c->n_annotations > 0)
		json_object_set_new(output, "annotations", list);
	else
		json_decref(list);
	json_object_set_new(o, "output", output);
	return o;
}

void github_check_create(
    struct github *g, struct github_call *call, const char *repository, const struct github_check *check)
{
	request_write(g, call, ACCESS_CHECKS, "POST", "new check run", repository,
	    xasprintf("/repos/%s/check-runs", repository), check_json(check, check->head_sha));
}

void github_check_update(struct github *g, struct github_call *call, const char *repository, int64_t check_id,
    const struct github_check *check)
{
	request_write(g, call, ACCESS_CHECKS, "PATCH", "check run's new state", repository,
	    xasprintf("/repos/%s/check-runs/%lld", repository, (long long)check_id), check_json(check, NULL));
}

static enum request_next on_checks(struct request *r)
{
	struct github_check_list *l = CONTAINER_OF(r->call, struct github_check_list, call);
	const json_t *runs = json_object_get(r->call->answer, "check_runs");
	json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		const char *name = json_get_str(run, "name");
		const char *external_id = json_get_str(run, "external_id");
		int64_t id = json_get_int(run, "id", 0);

		if (!name || id <= 0)
			continue;
		*ARRAY_PUSH(l->list, l->n) = (struct github_listed_check){.id = id,
		    .name = xstrdup(name),
		    .external_id = xstrdup(external_id ? external_id : ""),
		    .n_annotations = json_get_int(json_object_get(run, "output"), "annotations_count", 0)};
	}
	return request_next_page(r, CHECK_PAGES_MAX);
}

void github_checks_list(struct github *g, struct github_check_list *list, const char *repository, const char *head_sha)
{
	github_check_list_release(list);
	if (!is_sha1(head_sha)) {
		request_refuse(g, &list->call, "check run: not a commit");
		return;
	}
	request_start(g, &list->call,
	    &(struct request_spec){.access = ACCESS_CHECKS,
		.what = "listing check runs",
		.repository = repository,
		.path = xasprintf("/repos/%s/commits/%s/check-runs?app_id=%lld&filter=latest&per_page=%d", repository,
		    head_sha, (long long)g->app_id, CHECKS_PER_PAGE),
		.page = 1,
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_OBJECT,
		.on_answer = on_checks});
}

void github_check_list_release(struct github_check_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		FREE_ALL(list->list[i].name, list->list[i].external_id);
	FREE_AND_NULL(list->list);
	list->n = 0;
	github_call_release(&list->call);
}
