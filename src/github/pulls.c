#include "base/alloc.h"
#include "github/github_internal.h"

enum {
	PULLS_PER_PAGE = 50, /* one is some 25 KB of JSON, which is parsed on the loop */
	FILES_PER_PAGE = 100,
	FILES_MAX = 3000, /* GitHub lists no more */
	LIST_BYTES_MAX = 32 * 1024 * 1024,
};

void github_pull_get(
    struct github *g, struct github_call *call, const char *repository, int64_t number)
{
	if (!request_has_repository(g, call, repository, "pull request"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "reading a pull request",
		.repository = repository,
		.method = "GET",
		.path = xasprintf("/repos/%s/pulls/%lld", repository, (long long)number),
		.answer = ANSWER_OBJECT,
	    });
}

static bool on_page(struct request *r)
{
	struct github_page *p = CONTAINER_OF(r->call, struct github_page, call);
	char next[2048];

	if (pages_next_url(r, next, sizeof(next)))
		p->next_page = r->spec.page + 1;
	return true;
}

void github_pulls_open(struct github *g, struct github_page *page, const char *repository)
{
	int n = page->page > 0 ? page->page : 1;

	page->next_page = 0;
	if (!request_has_repository(g, &page->call, repository, "pull request"))
		return;
	request_start(g, &page->call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "listing pull requests",
		.repository = repository,
		.method = "GET",
		.path = xasprintf("/repos/%s/pulls?state=open&sort=updated&direction=desc"
				  "&per_page=%d&page=%d",
		    repository, PULLS_PER_PAGE, n),
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_page,
		.page = n,
	    });
}

/* ---- changed files ---- */

static void add_name(struct github_pull_files *f, const char *name)
{
	if (!name)
		return;
	/* room doubles when a power of two is reached, the NULL included */
	if ((f->n_names & (f->n_names + 1)) == 0)
		f->names = xrealloc(f->names, 2 * (f->n_names + 1) * sizeof(*f->names));
	f->names[f->n_names++] = xstrdup(name);
	f->names[f->n_names] = NULL;
}

static char *files_path(const struct request *r)
{
	return xasprintf("/repos/%s/pulls/%s/files?per_page=%d&page=%d", r->repository,
	    r->spec.text, FILES_PER_PAGE, r->spec.page);
}

static bool on_files(struct request *r)
{
	struct github_pull_files *f = CONTAINER_OF(r->call, struct github_pull_files, call);
	char next[2048];
	json_t *file;
	size_t i;

	json_array_foreach(r->call->answer, i, file)
	{
		add_name(f, json_get_str(file, "filename"));
		add_name(f, json_get_str(file, "previous_filename"));
	}
	github_call_release(r->call);
	if (!pages_next_url(r, next, sizeof(next))) {
		f->is_incomplete = (r->spec.page - 1) * FILES_PER_PAGE + (int)i >= FILES_MAX;
		return true;
	}
	if (r->spec.page * FILES_PER_PAGE >= FILES_MAX) {
		f->is_incomplete = true;
		return true;
	}
	r->spec.page++;
	request_go_to(r, files_path(r));
	return false;
}

void github_pull_files_get(
    struct github *g, struct github_pull_files *files, const char *repository, int64_t number)
{
	github_pull_files_release(files);
	files->names = xcalloc(1, sizeof(*files->names));
	if (!request_has_repository(g, &files->call, repository, "pull request"))
		return;
	request_start(g, &files->call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "listing a pull request's files",
		.repository = repository,
		.method = "GET",
		.path = xasprintf("/repos/%s/pulls/%lld/files?per_page=%d&page=1", repository,
		    (long long)number, FILES_PER_PAGE),
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_files,
		.page = 1,
		.text = xasprintf("%lld", (long long)number),
	    });
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
