#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "github/github_internal.h"

enum { COMMITS_BYTES_MAX = 32 * 1024 * 1024 };

static bool on_compare(struct request *r)
{
	struct github_compare *c = CONTAINER_OF(r->call, struct github_compare, call);
	const json_t *base = json_object_get(r->call->answer, "merge_base_commit");
	const char *sha = json_get_str(base, "sha");
	const char *date = json_get_str(json_at(base, "commit", "committer", NULL), "date");

	if (!sha || !is_sha1(sha)) {
		r->call->result.err = error_set(&r->call->result.why, ERR_PROTOCOL,
		    "%s: GitHub's comparison names no merge base", r->repository);
		return true;
	}
	memcpy(c->merge_base_sha, sha, sizeof(c->merge_base_sha));
	if (!date || rfc3339_parse(date, &c->merge_base_wall_ms))
		c->merge_base_wall_ms = 0;
	return true;
}

/* What is compared, and which page of it. */
struct comparison {
	const char *repository, *base, *head, *query;
	size_t max_answer_bytes;
	bool (*on_answer)(struct request *r);
};

static void start(struct github *g, struct github_call *call, const struct comparison *c)
{
	char *from, *to;

	if (!is_repository_name(c->repository) || !*c->base || !*c->head || strlen(c->base) > 250 ||
	    strlen(c->head) > 250) {
		request_refuse(g, call, "compare: not a repository's or commit's name");
		return;
	}
	from = pages_encode(c->base);
	to = pages_encode(c->head);
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "comparing commits",
		.repository = c->repository,
		.method = "GET",
		.path =
		    xasprintf("/repos/%s/compare/%s...%s?%s", c->repository, from, to, c->query),
		.max_answer_bytes = c->max_answer_bytes,
		.answer = ANSWER_OBJECT,
		.on_answer = c->on_answer,
	    });
	free(from);
	free(to);
}

void github_compare_get(struct github *g, struct github_compare *compare, const char *repository,
    const char *base, const char *head)
{
	compare->merge_base_sha[0] = '\0';
	compare->merge_base_wall_ms = 0;
	start(g, &compare->call,
	    &(struct comparison){
		.repository = repository,
		.base = base,
		.head = head,
		/* the first page alone lists the files, with their patches: not wanted */
		.query = "per_page=1&page=2",
		.on_answer = on_compare,
	    });
}

/* ---- the commits between ---- */

static bool on_commits(struct request *r)
{
	struct github_commits *c = CONTAINER_OF(r->call, struct github_commits, call);
	const json_t *answer = r->call->answer;
	const char *status = json_get_str(answer, "status");
	int64_t n = (int64_t)json_array_size(json_object_get(answer, "commits"));

	c->is_complete = n > 0 && json_get_int(answer, "total_commits", -1) == n;
	c->is_ahead = str_eq(status, "ahead");
	return true;
}

void github_commits_between(struct github *g, struct github_commits *commits,
    const char *repository, const char *base, const char *head)
{
	commits->is_complete = commits->is_ahead = false;
	start(g, &commits->call,
	    &(struct comparison){
		.repository = repository,
		.base = base,
		.head = head,
		.query = "per_page=250",
		.max_answer_bytes = COMMITS_BYTES_MAX, /* the files come along */
		.on_answer = on_commits,
	    });
}
