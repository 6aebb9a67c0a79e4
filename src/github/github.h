/* GitHub's REST API for one GitHub App: tokens with least permission, one budget of requests for each
 * installation, one function for each API call (https://docs.github.com/en/rest).
 *
 * Every call is asynchronous. The caller zero-initialises a struct github_call (or a struct that embeds one),
 * sets done, and owns it; the call is in use from the starting function until done(). Text arguments are copied,
 * except where the function says "borrowed until done". A bad argument ends the call with ERR_INVALID.
 *
 * Thread: loop, every function. */
#pragma once

#include "http/client.h"
#include "loop/loop.h"

struct github;

struct github_options {
	const char *api_url; /* without a trailing slash */
	int64_t app_id;
	struct secret *private_key_pem; /* shared, not copied */
	int writes_per_minute;          /* content writes (comments) of one installation */
	int max_concurrent;             /* requests at the same time, of all installations together */
};

/* Copies everything except the key. The HTTP client must outlive the github. ERR_INVALID: not an RSA private
 * key. Owns: the caller, with github_close(). */
int github_new(struct loop *l, struct http_client *http, const struct github_options *o, struct github **ret,
    struct error *e) MUST_CHECK;
/* Uses new options for requests from now on; running calls continue. Another App, key or api_url empties the
 * caches. On ERR_INVALID the old options stay in force. */
int github_reconfigure(struct github *g, const struct github_options *o, struct error *e) MUST_CHECK;
/* Ends every call with ERR_CANCELLED, frees g, then runs on_closed once. Asynchronous. */
void github_close(struct github *g, void (*on_closed)(void *owner), void *owner);

/* ---- a call ---- */
struct github_result {
	/* 0: success (2xx, or 304 for a request with an ETag). ERR_NOT_FOUND, ERR_AUTH, ERR_DENIED,
	 * ERR_INVALID, ERR_CONFLICT: GitHub refused it; ERR_BUSY: a limit, GitHub's or our own; ERR_NETWORK,
	 * ERR_TIMEOUT, ERR_PROTOCOL: no usable answer; ERR_TOO_BIG; ERR_CANCELLED. */
	int err;
	int status; /* of the last answer; 0: none */
	/* Wait at least so long before trying again; 0: GitHub named no time, so use your own back-off. */
	int64_t retry_after_ms;
	bool is_final;    /* err != 0, and trying again cannot succeed */
	bool was_sent;    /* the request itself may have reached GitHub; false if only its token failed */
	struct error why; /* for err != 0; names the repository, holds no secret */
};

struct github_call {
	/* in */
	/* Runs once, on the loop, never inside the function that started the call or inside github_cancel(). It
	 * may free the call, after github_call_release(). */
	void (*done)(struct github_call *call);
	void *owner; /* the caller's own */
	/* As in struct http_call: asked right before each request of the call goes out, however long it waited for its token, for
	 * budget or for a connection. False: ERR_CANCELLED. */
	bool (*may_go_out)(const void *owner);
	const void *going_owner;

	/* out */
	struct github_result result;
	/* The body if it is JSON, else NULL; the call owns it. Where a function describes its answer, it has that
	 * kind (object, array) when err is 0. */
	json_t *answer;
	void *internal;
};

/* done runs later in this turn with ERR_CANCELLED. It has no effect on a call that has ended. */
void github_cancel(struct github *g, struct github_call *call);
/* Frees the call's contents after done(); then the struct may be used for another call. */
void github_call_release(struct github_call *call);

/* ---- the App: github.c ---- */
/* GET /app. After its success github_bot_login() is known. */
void github_app_get(struct github *g, struct github_call *call);
/* The App's slug, and the login under which it writes ("SLUG[bot]"). NULL until github_app_get() or a search for
 * a comment or an issue succeeded once. Borrowed until the next turn of the loop. */
const char *github_app_slug(const struct github *g);
const char *github_bot_login(const struct github *g);

/* ---- dispatches: repository.c ---- */
/* POST /repos/{repository}/dispatches. `body` is the whole JSON text, borrowed until done.
 * It costs one request if the token is warm. */
void github_dispatch(
    struct github *g, struct github_call *call, const char *repository, const char *body, size_t body_bytes);

/* ---- comments: comments.c; writes are content writes, budget_gap_ms() apart in one installation ---- */
/* The App's own comment on a pull request, oldest first. */
struct github_comment_search {
	struct github_call call; /* result.err is 0 also if there is none */
	bool is_on_issue;        /* in: on an issue, for which GitHub requires another permission */
	int64_t comment_id;      /* out; 0: none */
	char *text;              /* out: its Markdown; NULL: none */
};
/* Reads page after page until a comment of the App contains `marker`. */
void github_comment_find(
    struct github *g, struct github_comment_search *search, const char *repository, int64_t number, const char *marker);
void github_comment_search_release(struct github_comment_search *search);
/* answer: the comment ("id", "html_url", "body", …). `text` is Markdown. */
void github_comment_create(
    struct github *g, struct github_call *call, const char *repository, int64_t number, const char *text);
void github_comment_update(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *text);

/* ---- issues that the App opens in vendors' repositories: comments.c; writes are content writes ---- */
struct github_issue_search {
	struct github_call call; /* result.err is 0 also if there is none */
	int64_t since_wall_ms;   /* in: the search ends at the first issue that was made earlier */
	int64_t number;          /* out; 0: none */
};
/* Reads page after page, newest first, until an issue of the App contains `marker`. */
void github_issue_find(
    struct github *g, struct github_issue_search *search, const char *repository, const char *marker);
/* answer: the issue ("number", "html_url", …). `text` is Markdown. */
void github_issue_create(
    struct github *g, struct github_call *call, const char *repository, const char *title, const char *text);
void github_issue_close(struct github *g, struct github_call *call, const char *repository, int64_t number);
void github_issue_comment(
    struct github *g, struct github_call *call, const char *repository, int64_t number, const char *text);

/* ---- check runs: repository.c; writes are content writes ---- */
enum { GITHUB_ANNOTATIONS_MAX = 50 }; /* GitHub's limit for one request */
struct github_annotation {
	const char *path; /* in the repository */
	int64_t line;
	const char *level; /* "notice", "warning", "failure" */
	const char *title, *message;
};
struct github_check {
	const char *name, *head_sha;
	const char *external_id, *details_url; /* NULL: none; in an update: unchanged */
	const char *conclusion;                /* NULL: it is in progress */
	const char *title, *summary;
	const char *text; /* NULL: none. GitHub accepts at most 65,535 characters, also in the summary */
	/* GitHub adds them to those that the check run has, and never removes one. */
	const struct github_annotation *annotations;
	size_t n_annotations; /* at most GITHUB_ANNOTATIONS_MAX */
};
/* answer: the check run ("id", …). GitHub shows only the newest of several with one name on a commit. */
void github_check_create(
    struct github *g, struct github_call *call, const char *repository, const struct github_check *check);
/* It does not use head_sha: a check run keeps its commit. */
void github_check_update(struct github *g, struct github_call *call, const char *repository, int64_t check_id,
    const struct github_check *check);
/* The App's own check runs of a commit, the newest of each name. */
struct github_check_list {
	struct github_call call;
	struct github_listed_check {
		int64_t id;
		char *name, *external_id;
		int64_t n_annotations;
	} * list; /* out; github_check_list_release() frees it */
	size_t n;
};
void github_checks_list(struct github *g, struct github_check_list *list, const char *repository, const char *head_sha);
void github_check_list_release(struct github_check_list *list);

/* ---- reactions: comments.c; a content write ---- */
/* POST …/issues/comments/{id}/reactions; content: "eyes", "rocket", "confused", "+1", … A second reaction of the
 * same kind is not an error: GitHub keeps one of each kind from one author. */
void github_comment_react(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *content);

/* ---- re-runs of a vendor's GitHub Actions: repository.c ---- */
enum github_rerun { GITHUB_RERUN_FAILED, GITHUB_RERUN_ALL };
/* POST …/actions/runs/{run_id}/rerun-failed-jobs, or …/rerun; it needs the permission "actions: write". ERR_DENIED
 * (403): the run is running, is older than 30 days, or has no failed job; `why` has GitHub's message. */
void github_run_again(
    struct github *g, struct github_call *call, const char *repository, const char *run_id, enum github_rerun what);

/* ---- pull requests: repository.c ---- */
/* answer: the pull request. */
void github_pull_get(struct github *g, struct github_call *call, const char *repository, int64_t number);
/* One page of a list. Start the next call with page = next_page, until that is 0. */
struct github_page {
	struct github_call call; /* answer: an array, at most 100 entries */
	int page;                /* in: from 1 (0 means 1) */
	int next_page;           /* out; 0: this was the last */
};
/* Open pull requests, last updated first: "number", "updated_at", "draft", "labels", "user",
 * "author_association", "head": {"sha", …}, "base": {"ref", "sha", …}. */
void github_pulls_open(struct github *g, struct github_page *page, const char *repository);
/* The changed paths of a pull request, both names of a renamed file. */
struct github_pull_files {
	struct github_call call;
	char **names; /* out: NULL-terminated, n_names of them */
	size_t n_names;
	bool is_incomplete; /* out: GitHub lists at most 3,000 files, and there may be more */
};
void github_pull_files_get(struct github *g, struct github_pull_files *files, const char *repository, int64_t number);
void github_pull_files_release(struct github_pull_files *files);

/* ---- branches and commits: repository.c ---- */
#define GITHUB_ETAG_BYTES 128
struct github_branch {
	struct github_call call; /* answer: the branch, "commit": {"sha", "commit": {…}, …} */
	/* in: the value from an earlier call, or ""; out: the value for the next call */
	char etag[GITHUB_ETAG_BYTES];
	char sha[41];      /* out: the tip; unchanged when is_unchanged */
	bool is_unchanged; /* out: the ETag still matches; answer is NULL */
};
void github_branch_get(struct github *g, struct github_branch *branch, const char *repository, const char *name);

struct github_compare {
	struct github_call call;
	char merge_base_sha[41];    /* out */
	int64_t merge_base_wall_ms; /* out: its commit date; 0: GitHub gave none */
};
/* base and head: SHAs or branch names of the repository. */
void github_compare_get(
    struct github *g, struct github_compare *compare, const char *repository, const char *base, const char *head);

/* The commits that `head` has and `base` has not. */
struct github_commits {
	/* answer: the comparison; its "commits" are oldest first: "sha", "author": {"login"},
	 * "commit": {"message", "author": {"name"}, "committer": {"date"}} */
	struct github_call call;
	bool is_complete; /* out: GitHub listed all of them (it lists 250) */
	bool is_ahead;    /* out: head contains base; false: the branch was force-pushed */
};
void github_commits_between(
    struct github *g, struct github_commits *commits, const char *repository, const char *base, const char *head);

/* ---- deliveries of the App's webhook: github.c ---- */
#define GITHUB_CURSOR_BYTES 256
struct github_deliveries {
	struct github_call call;               /* answer: an array, newest first: "id", "guid", "status_code", … */
	char cursor[GITHUB_CURSOR_BYTES];      /* in: empty, or an earlier next_cursor */
	char next_cursor[GITHUB_CURSOR_BYTES]; /* out; empty: no older ones */
};
void github_deliveries_get(struct github *g, struct github_deliveries *deliveries);
/* Asks GitHub to send delivery `id` (its number, not its GUID) again. */
void github_delivery_redeliver(struct github *g, struct github_call *call, int64_t id);

/* ---- numbers for /metrics ---- */
struct github_stats {
	int64_t n_requests;       /* everything that went out */
	int64_t n_token_requests; /* of these: installation tokens */
	int64_t n_answers_4xx, n_answers_5xx;
	int64_t n_failures;       /* requests without an answer */
	int64_t n_rate_limited;   /* answers because of a rate limit, primary or secondary */
	int64_t n_tokens_refused; /* 401 answers, after each of which a new credential was used */
	int n_in_flight, n_waiting;
	int n_tokens;                /* cached and fresh */
	int64_t oldest_token_age_ms; /* 0: no token */
	/* Why GitHub does not serve this daemon: there is no answer, a 5xx or a 401. "": the last answer was another one. */
	char trouble[504];
	int64_t trouble_wall_ms;
};
void github_read_stats(const struct github *g, struct github_stats *ret);

/* The budget of one installation (id 0: the App itself, with its JWT). */
struct github_budget_stats {
	int64_t installation_id;
	int64_t remaining;     /* of GitHub's hourly quota; -1: not known yet */
	int64_t reset_wall_ms; /* when the quota is full again; 0: not known */
	int64_t blocked_ms;    /* how long nothing may be sent */
};
/* Fills at most n; returns how many there are. */
size_t github_read_budgets(const struct github *g, struct github_budget_stats *ret, size_t n);

/* ---- limits, among several daemons ---- */
/* on_limit runs inside the end of a request whose answer named a limit, or used the last request of the quota. */
void github_on_limit(struct github *g, void (*on_limit)(void *owner), void *owner);
/* Another daemon met a limit: nothing is sent for known->blocked_ms, at least a second and at most an hour. */
void github_learn_limit(struct github *g, const struct github_budget_stats *known);
