/* event_parse(): the first byte picks the event. An accepted event has every field that the planner relies on. */

#include "webhook/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct event *ev)
{
	assert(ev->action && ev->sender && ev->repository);
	if (ev->kind == EVENT_PULL_REQUEST) {
		assert(ev->pull_action < N_PULL_ACTIONS && ev->pull.number > 0);
		assert(is_sha1(ev->pull.head_sha) && is_sha1(ev->pull.base_sha));
		assert(ev->pull.title && ev->pull.author && ev->pull.base_ref && ev->pull.labels);
		assert(is_repository_name(ev->repository));
	} else if (ev->kind == EVENT_PUSH) {
		assert(ev->ref && is_sha1(ev->before) && is_sha1(ev->after));
	} else if (ev->kind == EVENT_ISSUE_COMMENT) {
		assert(ev->comment_body && ev->comment_author && ev->comment_association);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const events[] = {"pull_request", "push", "issue_comment", "check_run", "check_suite",
	    "installation", "installation_repositories"};
	struct event ev;
	char *body;

	if (n == 0)
		return 0;
	body = xmemdup(data, n);
	if (event_parse(events[data[0] % ARRAY_LEN(events)], body + 1, n - 1, &ev, NULL) == 0)
		check(&ev);
	event_release(&ev);
	free(body);
	return 0;
}
