/* Shared by the files of this folder. Thread: loop, every function.
 *
 * A request passes through these files: request.c starts it, token.c or github.c gives it its credential, request.c
 * queues it until the installation's budget allows it and sends it, answer.c reads the answer, and request.c ends
 * it. github.c, comments.c and repository.c hold the functions of github.h, one for each call of the API. */
#pragma once

#include "github/budget.h"
#include "github/github.h"

/* The credential of a request: the App's own, or an installation's token with one permission. */
enum access { ACCESS_APP, ACCESS_DISPATCH, ACCESS_COMMENT, ACCESS_READ, ACCESS_CHECKS, ACCESS_ISSUES, ACCESS_ACTIONS };

struct request_list {
	TAILQ_HEAD(request_head, request) head;
	int n;
};

enum answer_kind { ANSWER_ANY, ANSWER_OBJECT, ANSWER_ARRAY };

/* After an answer, the call is done, or the request goes out again. */
enum request_next { REQUEST_DONE, REQUEST_AGAIN };

/* One request of an API function. Taken over: the request frees it. */
struct request_spec {
	enum access access;
	enum budget_kind kind;
	const char *what;       /* static, for messages: "dispatch" */
	const char *repository; /* copied; NULL for the App's own */
	const char *method;     /* static; NULL: "GET" */
	char *path;             /* taken over */
	int page;               /* from 1: of a list; "&page=N" is appended to the path. 0: not a list */
	/* The answer is compared with github_bot_login(): where that is not known, GET /app goes out first. */
	bool needs_login;
	const char *body; /* borrowed until done; NULL: none */
	size_t body_bytes;
	char *own_body;           /* taken over; then `body` is NULL */
	char *etag;               /* taken over; for If-None-Match; NULL: none */
	const char *if_not_found; /* static: the meaning of a 404; NULL: use GitHub's message */
	size_t max_answer_bytes;  /* 0: the HTTP client's limit */
	enum answer_kind answer;  /* of a 2xx; another kind is ERR_PROTOCOL */
	/* Reads a good answer, and may set the call's result.err. NULL: there is nothing to read. */
	enum request_next (*on_answer)(struct request *r);
	char *marker; /* taken over; for on_answer */
};

struct request {
	struct github *g;
	struct github_call *call;
	struct request_spec spec;
	char *repository;
	TAILQ_ENTRY(request) all;  /* in g->requests until done */
	TAILQ_ENTRY(request) at;   /* in *list */
	struct request_list *list; /* waiting for a token or for budget, or ended; NULL: it is sent */
	struct account *account;   /* whose budget it waits for or uses */
	int64_t token_serial;      /* of the token it went out with; 0: none */
	int64_t generation;        /* g->generation when it went out */
	bool is_for_login;         /* goes out as GET /app; see spec.needs_login */
	bool has_new_token;        /* a 401 was already answered with a new credential */
	struct http_call http;
	char *url, *authorization, *if_none_match;
	const char *headers[7];
};

/* One installation's budget, and the requests that wait for it. Id 0: the App itself. */
struct account {
	STAILQ_ENTRY(account) link;
	int64_t installation_id;
	struct budget budget;
	struct request_list waiting[N_BUDGET_KINDS];
};

/* The installation of the App on one repository: a look-up and its answer. */
struct installation {
	SLIST_ENTRY(installation) link;
	struct github *g;
	char *repository;
	int64_t id;                 /* 0: not known, or not installed */
	int64_t good_until_mono_ms; /* of id, or of "not installed" in `why` */
	struct github_result why;
	bool is_requested;
	int64_t generation; /* g->generation at the request */
	TAILQ_HEAD(, token) waiting;
	struct github_call call;
};

/* The token of one repository with one permission. */
struct token {
	LIST_ENTRY(token) link;
	TAILQ_ENTRY(token) at; /* in its installation's waiting list */
	struct github *g;
	char *repository;
	enum access access;
	char *text;     /* secret; NULL: none */
	int64_t serial; /* of this text */
	int64_t installation_id;
	int64_t made_mono_ms, refresh_mono_ms, stale_mono_ms;
	bool is_requested, has_new_installation;
	int64_t generation; /* g->generation at the request */
	struct request_list waiting;
	struct github_call call;
};

struct github {
	struct loop *loop;
	struct http_client *http;
	char *api_url;
	int64_t app_id;
	struct secret *private_key_pem;
	int writes_per_minute, max_concurrent;
	int64_t generation; /* increases when another App or server is configured */

	char *jwt; /* secret; NULL: none yet */
	int64_t jwt_made_wall_ms;
	char *slug, *bot_login; /* NULL until GET /app succeeded */

	SLIST_HEAD(, installation) installations;
	LIST_HEAD(, token) tokens;
	int64_t last_token_serial;
	struct budget_window token_requests;

	STAILQ_HEAD(, account) accounts; /* the first is the App's */
	struct account *turn_of;         /* the account that may send next; NULL: the first */
	int n_in_flight;
	bool is_pumping, must_pump_again;
	struct timer *wake;           /* runs when a waiting request may be sent */
	struct timer *turn;           /* runs the done of calls that ended inside the caller's call */
	struct request_head requests; /* every one, by `all` */
	struct request_list ended;

	struct github_stats stats;
	void (*on_limit)(void *owner); /* see github_on_limit(); NULL: none */
	void *limit_owner;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

/* ---- github.c ---- */
/* Frees g if it is closing and nothing is left. */
void github_check_closed(struct github *g);
/* Overwrites a text that holds a credential and frees it. NULL is fine. */
void free_secret(char *s);
/* The App's JWT, cached while fresh. Borrowed; NULL: the key cannot sign. */
const char *app_jwt(struct github *g);
void app_jwt_drop(struct github *g);
void app_forget(struct github *g);
/* on_answer of GET /app. */
enum request_next app_read(struct request *r);

/* ---- request.c ---- */
void request_list_init(struct request_list *list);
void request_enter(struct request *r, struct request_list *list);
void request_leave(struct request *r);
/* Starts the request, or ends it with ERR_INVALID if spec->repository is not "owner/name". Owns: takes over
 * what request_spec says, in either case. */
void request_start(struct github *g, struct github_call *call, const struct request_spec *spec);
/* Ends a call with ERR_INVALID because of another bad argument. */
void request_refuse(struct github *g, struct github_call *call, const char *why);

/* A content write with a JSON body; the answer is an object. Owns: takes over path and body. */
void request_write(struct github *g, struct github_call *call, enum access access, const char *method, const char *what,
    const char *repository, char *path, json_t *body);
/* For on_answer: frees the answer and turns to the next page, if there is one and this is not page pages_max. */
enum request_next request_next_page(struct request *r, int pages_max);
/* Ends a request that waits for its token with that token's error. */
void request_fail_like(struct request *r, const struct github_result *why);
/* Waits for r->account's budget and then goes out, or ends with ERR_BUSY if that would take too long. */
void request_queue(struct request *r);
/* Sends all waiting requests that may go out now. */
void request_pump(struct github *g);
/* Runs done for every call that ended. */
void request_run_ended(struct github *g);
/* "owner/name", or "the App": for messages. */
const char *request_target(const struct request *r);
/* The account of an installation; it makes one if there is none. */
struct account *account_of(struct github *g, int64_t installation_id);

/* ---- answer.c ---- */
/* Fills r->call->result and answer from r->http, and updates the account's budget. */
void answer_read(struct request *r);
/* The URL that the Link header calls "next"; free(). NULL: none. */
char *answer_next_url(const struct request *r);
bool answer_has_next(const struct request *r);

/* ---- token.c ---- */
/* Passes r to request_queue() when its token is there, perhaps now, or ends it with an error. */
void token_want(struct request *r);
/* The token's text for r if it is still fresh; sets r->token_serial. Borrowed; NULL: not fresh. */
const char *token_use(struct request *r);
/* GitHub refused the token that r used: drops it. */
void token_refused(struct request *r);
/* Drops all tokens and installations; requests that wait for one keep waiting. */
void tokens_forget(struct github *g);
void tokens_free(struct github *g);
void tokens_count(const struct github *g, struct github_stats *ret);
