#include "model/event.h"

WORDS_DEFINE(pull_action, N_PULL_ACTIONS, PULL_ACTIONS(WORD_NAME))
WORDS_DEFINE(command_kind, N_COMMAND_KINDS, COMMAND_KINDS(WORD_NAME))
WORDS_DEFINE(command_result, N_COMMAND_RESULTS, COMMAND_RESULTS(WORD_NAME))

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

bool command_result_is_error(enum command_result r)
{
#define RESULT_IS_ERROR(e, name, is_error, why) is_error,
	static const bool is_error[] = {COMMAND_RESULTS(RESULT_IS_ERROR)};

	return is_error[r];
}

const char *command_result_why(enum command_result r)
{
#define RESULT_WHY(e, name, is_error, why) why,
	static const char *const why[] = {COMMAND_RESULTS(RESULT_WHY)};

	return why[r];
}
