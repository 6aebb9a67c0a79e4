/* What the files of this folder share.
 *
 * A request's way: request.c starts it, token.c (with installation.c and app.c) gives it
 * its credential, queue.c lets it go when the budget allows, outcome.c says what the answer
 * means, request.c ends it. */
#ifndef GITHUB_GITHUB_INTERNAL_H
#define GITHUB_GITHUB_INTERNAL_H

#include <sys/queue.h>

#include "base/rsa.h"
#include "github/budget.h"
#include "github/github.h"

/* As whom, and with what, a request is made. */
enum access {
	ACCESS_APP,
	ACCESS_DISPATCH,
	ACCESS_COMMENT,
	ACCESS_READ,
	ACCESS_CHECKS,
	ACCESS_ISSUES,
	ACCESS_ACTIONS
};

struct request;
struct request_list {
	TAILQ_HEAD(request_head, request) head;
	int n;
};

enum answer_kind { ANSWER_ANY, ANSWER_OBJECT, ANSWER_ARRAY };

/* What one API function asks for. */
struct request_spec {
	enum access access;
	enum budget_kind kind;
	const char *what;       /* static, for messages: "dispatch" */
	const char *repository; /* copied; NULL for the App's own */
	const char *method;     /* static */
	char *path;             /* taken over */
	const char *body;       /* borrowed until the end; NULL: none */
	size_t body_bytes;
	char *own_body;           /* taken over; then `body` stays NULL */
	char *etag;               /* taken over; If-None-Match; NULL: none */
	const char *if_not_found; /* static: what a 404 means here; NULL: GitHub's words */
	size_t max_answer_bytes;  /* 0: the client's own limit */
	enum answer_kind answer;  /* of a 2xx; another is ERR_PROTOCOL */
	/* Reads a good answer: true when the call is done, false when the request was given
	 * another path (request_go_to()) and goes out again. NULL: nothing to read. */
	bool (*on_answer)(struct request *r);
	/* on_answer's own: the page in hand, and a text taken over */
	int page;
	char *text;
};

struct request {
	struct github *g;
	struct github_call *call;
	struct request_spec spec; /* its pointers are owned as said there */
	char *repository;
	TAILQ_ENTRY(request) all;  /* in g->requests until done */
	TAILQ_ENTRY(request) at;   /* in *list */
	struct request_list *list; /* waiting for a token, for budget, or ended; NULL: in the air */
	struct account *account;   /* whose budget it waits for or uses */
	int64_t token_serial;      /* of the token it went out with; 0: none */
	int64_t generation;        /* of the App when it went out */
	bool has_new_token;        /* a 401 was answered with a new credential once */
	struct http_call http;
	char *url, *authorization, *if_none_match;
	const char *headers[7];
};

/* One installation's budget, and what waits for it. Id 0: the App itself. */
struct account {
	struct account *next;
	int64_t installation_id;
	struct budget budget;
	struct request_list waiting[N_BUDGET_KINDS];
};

struct token;
TAILQ_HEAD(token_list, token);

/* Where the App is installed for one repository: a look-up and its answer. */
struct installation {
	struct installation *next;
	struct github *g;
	char *repository;
	int64_t id;                 /* 0: not known, or not there */
	int64_t good_until_mono_ms; /* of id, or of a "not there" in `why` */
	struct github_result why;
	bool is_asking;
	int64_t generation; /* when it was asked */
	struct token_list waiting;
	struct github_call call;
};

/* One repository's token with one access; the text is secret. */
struct token {
	struct token *next;
	TAILQ_ENTRY(token) at; /* in its installation's waiting list */
	struct github *g;
	char *repository;
	enum access access;
	char *text;     /* NULL: none */
	int64_t serial; /* of this text */
	int64_t installation_id;
	int64_t made_mono_ms, refresh_mono_ms, stale_mono_ms;
	bool is_asking, has_new_installation;
	int64_t generation; /* when it was asked */
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
	int64_t generation; /* grows when another App or server is configured */

	char *jwt; /* NULL: none yet */
	int64_t jwt_made_wall_ms;
	char *slug, *bot_login; /* NULL until GET /app succeeded */

	struct installation *installations;
	struct token *tokens;
	int64_t last_token_serial;
	struct budget_window token_requests;

	struct account *accounts; /* the first is the App's */
	struct account *turn_of;  /* who is asked next; NULL: the first */
	int n_in_flight;
	bool is_pumping, must_pump_again;
	struct timer *wake;           /* something may be sent then */
	struct timer *turn;           /* runs the done of what ended inside the caller's call */
	struct request_head requests; /* every one, by `all` */
	struct request_list ended;

	struct github_stats stats;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

/* ---- github.c ---- */
void github_check_closed(struct github *g);
/* free() that leaves nothing of a credential behind. NULL is fine. */
void free_secret(char *s);

/* ---- request.c ---- */
void request_list_init(struct request_list *list);
void request_enter(struct request *r, struct request_list *list);
void request_leave(struct request *r);
void request_start(struct github *g, struct github_call *call, const struct request_spec *spec);
/* Ends it with an error of its own; done runs later. */
void request_fail(struct request *r, int err, bool is_final, int64_t retry_after_ms,
    const char *fmt, ...) PRINTF(5, 6);
void request_fail_like(struct request *r, const struct github_result *why);
/* On to the next page: the path is taken over. */
void request_go_to(struct request *r, char *path);
/* It has its credential and its budget: out. */
void request_send(struct request *r);
/* Its token came. */
void request_has_token(struct request *r);
void request_run_ended(struct github *g);
/* Ends a call that never became a request: a bad argument. */
void request_refuse(struct github *g, struct github_call *call, const char *why);
/* False, and the call is refused, where `repository` is no owner/name. what: "comment", … */
bool request_has_repository(
    struct github *g, struct github_call *call, const char *repository, const char *what);
/* On to GET /app, which says under which login the App writes. */
void request_go_to_app(struct request *r);

/* ---- queue.c ---- */
struct account *account_of(struct github *g, int64_t installation_id);
void accounts_free(struct github *g);
/* Waits for r->account's budget, or ends with ERR_BUSY when that is far off. */
void queue_add(struct request *r);
void queue_pump(struct github *g);

/* ---- outcome.c ---- */
/* Fills r->call->result and answer from r->http and lets the budget learn. */
void outcome_read(struct request *r);

/* ---- app.c ---- */
/* The App's JWT, cached while fresh. Borrowed; NULL: the key cannot sign. */
const char *app_jwt(struct github *g);
void app_jwt_drop(struct github *g);
void app_forget(struct github *g);
bool app_read(struct request *r); /* on_answer of GET /app */

/* ---- installation.c ---- */
/* Ends in token_on_installation(t), perhaps inside the call. */
void installation_want(struct github *g, struct token *t);
/* Forgets what is known of that repository, not who waits for it. */
void installation_drop(struct github *g, const char *repository);
void installations_forget(struct github *g);
void installations_free(struct github *g);

/* ---- token.c ---- */
/* Gives r its token now (request_has_token()) or when it has come, or fails it. */
void token_want(struct request *r);
/* The token's text for r, when it is still fresh; sets r->token_serial. Borrowed. */
const char *token_use(struct request *r);
/* GitHub did not take the token that r used. */
void token_refused(struct request *r);
void token_on_installation(struct token *t, const struct installation *i);
void tokens_forget(struct github *g);
void tokens_free(struct github *g);
void tokens_count(const struct github *g, struct github_stats *ret);

/* ---- comments.c ---- */
/* The marker is a line of its own: within a line it is what somebody wrote, shown as code. */
bool body_is_marked(const char *body, const char *marker);

/* ---- pages.c ---- */
/* The URL that the Link header calls "next"; false: there is none. */
bool pages_next_url(const struct request *r, char *out, size_t n);
/* s with all but unreserved characters percent-encoded. free(). */
char *pages_encode(const char *s);

#endif
