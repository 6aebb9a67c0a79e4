/* Compares the open pull requests with the database.
 *
 * GitHub lists the last updated pull requests first, so a look normally ends on the first page, at those that the last
 * look saw. The first look after a start and each twelfth one read the complete list. Only these looks find pull
 * requests that are open in the database but not at GitHub. */

#include "dispatch/reconcile.h"

enum {
	PAGES_MAX = 100,
	COMPLETE_EACH = 12,
	CLOSED_MAX = 100, /* looked up in one look */
	OVERLAP_MS = 10 * 60 * 1000,
	WAIT_MS = 1000, /* poll interval while the planner is busy: its work may fill the gap */
	WAITS_MAX = 30,
};

static const char KEY[] = "reconcile.pulls";

static void next_pull(struct reconciler *r);

static int compare_numbers(const void *a, const void *b)
{
	const struct known_pull *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Both lists are in the order of their numbers. */
static struct known_pull *find_pull(const struct list_pulls *l, int64_t number)
{
	const struct known_pull key = {.number = number};

	return l->n ? bsearch(&key, l->list, l->n, sizeof(key), compare_numbers) : NULL;
}

static int64_t pull_time(const json_t *pull, const char *key)
{
	const char *text = json_get_str(pull, key);
	int64_t ms;

	return text && rfc3339_parse(text, &ms) == 0 ? ms : 0;
}

/* ---- the end ---- */

static void end_pulls(struct reconciler *r);

static void on_unlisted(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.call);
	struct github_result result = call->result;
	bool is_gone = result.err == ERR_NOT_FOUND;
	char *body = NULL;

	if (str_eq(json_get_str(call->answer, "state"), "closed"))
		body = synthetic_pull("closed", call->answer, r->config->upstream_repository, NULL);
	github_call_release(call);
	if (r->d->is_closing || (result.err && !is_gone)) {
		free(body);
		reconcile_op_ended(r, "reading a pull request", result.err, &result.why);
		return;
	}
	if (!reconcile_op_ended(r, "", 0, NULL)) {
		free(body);
		return;
	}
	if (!body) {
		end_pulls(r);
		return;
	}
	log_event(LOG_INFO, "pull_found_closed", LOG_I("pr", r->pl.known.list[r->pl.i].number));
	reconcile_plan(r, "pull_request", body, end_pulls);
}

/* After a complete list, reads each pull request that is open in the database but not in the list: it was closed, or
 * updated during the look. Then saves the position. */
static void end_pulls(struct reconciler *r)
{
	size_t i = 0;

	while (i < r->pl.known.n && r->pl.is_listed[i])
		i++;
	if (!r->pl.is_complete || i >= r->pl.known.n || r->pl.n_requested >= CLOSED_MAX) {
		reconcile_save_setting(
		    r, xstrdup(KEY), xasprintf("%lld", (long long)r->pl.newest_ms), reconcile_part_done);
		return;
	}
	r->pl.i = i;
	r->pl.is_listed[i] = true;
	r->pl.n_requested++;
	r->op.call = (struct github_call){.done = on_unlisted};
	reconcile_goes_to_github(r);
	github_pull_get(r->d->deps.github, &r->op.call, r->config->upstream_repository, r->pl.known.list[i].number);
}

/* ---- one pull request of the list ---- */

static void continue_pulls(struct reconciler *r)
{
	event_release(&r->pl.event);
	r->pl.i++;
	next_pull(r);
}

static void plan_pull(struct reconciler *r, const char *action, const char *before)
{
	const json_t *pull = json_array_get(r->pl.page, r->pl.i);
	const char *repository = r->config->upstream_repository;

	log_event(LOG_INFO, "pull_found", LOG_I("pr", json_get_int(pull, "number", 0)), LOG_S("as", action));
	reconcile_plan(r, "pull_request", synthetic_pull(action, pull, repository, before), continue_pulls);
}

static void on_head_noted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.note.op);

	if (reconcile_op_ended(r, "recording a pull request", op->err, &op->why))
		continue_pulls(r);
}

/* True: the database has this head, or a newer state than GitHub's list. */
static bool is_up_to_date(const struct known_pull *known, const json_t *pull)
{
	const char *head = json_get_str(json_object_get(pull, "head"), "sha");

	return (known->is_open && str_eq(known->head_sha, head)) || known->updated_ms > pull_time(pull, "updated_at");
}

/* The pull request is open at GitHub and was not open in the database when the look began. Its webhook may have arrived
 * since then. */
static void decide_not_open(struct reconciler *r)
{
	const json_t *pull = json_array_get(r->pl.page, r->pl.i);
	int64_t number = json_get_int(pull, "number", 0);
	const struct known_pull *known = find_pull(&r->pl.all, number);
	struct error why = {0};

	if (known && is_up_to_date(known, pull)) {
		continue_pulls(r);
		return;
	}
	if (known || !r->pl.is_first_look || pull_time(pull, "created_at") >= r->since_ms) {
		bool was_open = known && known->is_open;

		plan_pull(r,
		    !known     ? "opened"
		    : was_open ? "synchronize"
			       : "reopened",
		    was_open ? known->head_sha : NULL);
		return;
	}
	/* The first look only records the present state. */
	char *body = synthetic_pull("opened", pull, r->config->upstream_repository, NULL);
	int rc = r->d->deps.parse_event("pull_request", body, strlen(body), &r->pl.event, &why);
	free(body);
	if (rc) {
		log_event(LOG_WARN, "pull_unread", LOG_I("pr", number), LOG_S("error", why.text));
		continue_pulls(r);
		return;
	}
	r->op.note = (struct note_head){
	    .op.done = on_head_noted,
	    .repository = r->config->upstream_repository,
	    .head_sha = r->pl.event.pull.head_sha,
	    .pull = &r->pl.event.pull,
	    .now_ms = clock_wall_ms(),
	};
	reconcile_submitted(r, "recording a pull request", store_note_head(r->d->deps.store, &r->op.note));
}

static void on_all_pulls_listed(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.list_pulls.q);

	r->pl.all = r->op.list_pulls;
	if (!reconcile_op_ended(r, "listing pull requests", q->err, &q->why))
		return;
	r->pl.has_all = true;
	decide_not_open(r);
}

static void on_pull_page(struct github_call *call);

static void next_pull(struct reconciler *r)
{
	for (; r->pl.i < json_array_size(r->pl.page); r->pl.i++) {
		const json_t *pull = json_array_get(r->pl.page, r->pl.i);
		int64_t updated_ms = pull_time(pull, "updated_at");

		if (updated_ms > r->pl.newest_ms)
			r->pl.newest_ms = updated_ms;
		if (!r->pl.must_be_complete && updated_ms < r->pl.seen_ms - OVERLAP_MS) {
			end_pulls(r);
			return;
		}
		if (!json_get_str(json_object_get(pull, "head"), "sha"))
			continue;
		struct known_pull *known = find_pull(&r->pl.known, json_get_int(pull, "number", 0));
		if (known)
			r->pl.is_listed[known - r->pl.known.list] = true;
		if (known && is_up_to_date(known, pull))
			continue;
		if (known) {
			plan_pull(r, "synchronize", known->head_sha);
		} else if (r->pl.has_all) {
			decide_not_open(r);
		} else {
			r->op.list_pulls = (struct list_pulls){
			    .q.done = on_all_pulls_listed,
			    .repository = r->config->upstream_repository,
			};
			reconcile_submitted(
			    r, "listing pull requests", store_list_pulls(r->d->deps.store, &r->op.list_pulls));
		}
		return;
	}
	if (!r->pl.next_page || r->pl.next_page > PAGES_MAX) {
		r->pl.is_complete = r->pl.next_page == 0;
		end_pulls(r);
		return;
	}
	r->op.page = (struct github_page){.call.done = on_pull_page, .page = r->pl.next_page};
	reconcile_goes_to_github(r);
	github_pulls_open(r->d->deps.github, &r->op.page, r->config->upstream_repository);
}

static void on_pull_page(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.page.call);
	struct github_result result = call->result;

	json_decref(r->pl.page);
	r->pl.page = json_incref(call->answer);
	r->pl.next_page = r->op.page.next_page;
	github_call_release(call);
	if (!reconcile_op_ended(r, "listing open pull requests", result.err, &result.why))
		return;
	r->pl.i = 0;
	next_pull(r);
}

/* ---- the beginning ---- */

static void on_open_pulls_listed(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.list_pulls.q);

	r->pl.known = r->op.list_pulls;
	if (!reconcile_op_ended(r, "listing pull requests", q->err, &q->why))
		return;
	r->pl.is_listed = xcalloc(r->pl.known.n + 1, sizeof(*r->pl.is_listed));
	r->pl.next_page = 1;
	next_pull(r);
}

static void have_pull_memory(struct reconciler *r)
{
	r->pl.is_first_look = !r->setting_value || parse_int64(r->setting_value, &r->pl.seen_ms) != 0;
	r->pl.newest_ms = r->pl.seen_ms;
	r->pl.must_be_complete = r->pl.is_first_look || r->n_complete_looks % COMPLETE_EACH == 0;
	r->op.list_pulls = (struct list_pulls){
	    .q.done = on_open_pulls_listed,
	    .repository = r->config->upstream_repository,
	    .only_open = true,
	};
	reconcile_submitted(r, "listing pull requests", store_list_pulls(r->d->deps.store, &r->op.list_pulls));
}

void reconcile_pulls(struct reconciler *r)
{
	if (!planner_is_idle(r->d->planner) && r->pl.n_waits++ < WAITS_MAX)
		reconcile_later(r, reconcile_pulls, WAIT_MS);
	else
		reconcile_load_setting(r, xstrdup(KEY), have_pull_memory);
}
