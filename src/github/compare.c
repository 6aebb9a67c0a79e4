#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "github/github_internal.h"

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

void github_compare_get(struct github *g, struct github_compare *compare, const char *repository,
    const char *base, const char *head)
{
	char *from, *to;

	compare->merge_base_sha[0] = '\0';
	compare->merge_base_wall_ms = 0;
	if (!is_repository_name(repository) || !*base || !*head || strlen(base) > 250 ||
	    strlen(head) > 250) {
		request_refuse(g, &compare->call, "compare: not a repository's or commit's name");
		return;
	}
	from = pages_encode(base);
	to = pages_encode(head);
	request_start(g, &compare->call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "comparing commits",
		.repository = repository,
		.method = "GET",
		/* the first page alone lists the files, with their patches: not wanted */
		.path =
		    xasprintf("/repos/%s/compare/%s...%s?per_page=1&page=2", repository, from, to),
		.answer = ANSWER_OBJECT,
		.on_answer = on_compare,
	    });
	free(from);
	free(to);
}
