#include "model/event.h"

const char *pull_action_name(enum pull_action a)
{
	static const char *const names[N_PULL_ACTIONS] = {[PULL_OPENED] = "opened",
	    [PULL_REOPENED] = "reopened",
	    [PULL_SYNCHRONIZE] = "synchronize",
	    [PULL_READY_FOR_REVIEW] = "ready_for_review",
	    [PULL_CONVERTED_TO_DRAFT] = "converted_to_draft",
	    [PULL_LABELED] = "labeled",
	    [PULL_UNLABELED] = "unlabeled",
	    [PULL_BASE_CHANGED] = "edited",
	    [PULL_CLOSED] = "closed"};

	return names[a];
}

void pull_info_release(struct pull_info *p)
{
	FREE_ALL(p->head_sha, p->base_sha, p->base_ref, p->title, p->author, p->author_association);
	strv_free(p->labels);
	*p = (struct pull_info){0};
}

void push_commits_free(struct push_commit *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		FREE_ALL(list[i].sha, list[i].author, list[i].title);
		strv_free(list[i].files);
	}
	free(list);
}

void event_release(struct event *e)
{
	push_commits_free(e->commits, e->n_commits);
	pull_info_release(&e->pull);
	FREE_ALL(e->action, e->repository, e->sender, e->label, e->ref, e->before, e->after, e->head_message,
	    e->head_author, e->comment_body, e->comment_author, e->comment_author_type, e->comment_association,
	    e->pull_author, e->check_head_sha, e->check_name, e->check_external_id);
	*e = (struct event){0};
}

static const char *const kind_names[N_COMMAND_KINDS] = {[COMMAND_UNKNOWN] = "unknown",
    [COMMAND_RETEST] = "retest",
    [COMMAND_CANCEL] = "cancel",
    [COMMAND_OK_TO_TEST] = "ok-to-test",
    [COMMAND_DECLINE] = "ok-to-test cancel",
    [COMMAND_STATUS] = "status",
    [COMMAND_HELP] = "?",
    [COMMAND_STRESS] = "stress"};

static const struct {
	const char *name;
	bool is_error;
	const char *why;
} results[] = {
#define X(e, name, is_error, why) {name, is_error, why},
    COMMAND_RESULTS(X)
#undef X
};

const char *command_kind_name(enum command_kind k) { return kind_names[k]; }

enum command_kind command_kind_parse(const char *name)
{
	int k = 0;

	while (k < N_COMMAND_KINDS && !(name && str_eq(kind_names[k], name)))
		k++;
	return (enum command_kind)k;
}

const char *command_result_name(enum command_result r) { return results[r].name; }

enum command_result command_result_parse(const char *name)
{
	int r = 0;

	while (r < N_COMMAND_RESULTS && !(name && str_eq(results[r].name, name)))
		r++;
	return (enum command_result)r;
}

bool command_result_is_error(enum command_result r) { return results[r].is_error; }

const char *command_result_why(enum command_result r) { return results[r].why; }
