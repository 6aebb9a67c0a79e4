/* The part of GitHub that the tests of the github layer need, on a thread: it knows the App's entry, installations
 * and tokens. The test's own function answers all other requests, and every request is remembered. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include "github/github.h"
#include "loopback.h"
#include "secret_of.h"
#include "test_keys.h"

struct fake_github {
	struct loopback *lb;
	struct loop *loop;
	struct http_client *http;
	struct github *github;
	char *url;
	struct secret *pem;
	pthread_mutex_t lock; /* guards the fields below */
	struct buf log;       /* "METHOD /path\n" of every request */
	int n_tokens;         /* the last token issued; its text is "token-N" */
	int n_bad_tokens;     /* requests with tokens up to this number get 401 */
	int64_t token_life_s;
	int status_of_installation, status_of_token; /* 0: all is well */
	/* The whole answer to `request`, free(); NULL: 204. On the server's threads. */
	char *(*answer)(struct fake_github *f, const char *request);
	atomic_int n_at_once, n_at_once_max;
};

static inline char *fake_answer(const char *status, const char *headers, const char *body)
{
	return xasprintf("HTTP/1.1 %s\r\n%sContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n\r\n%s",
	    status, headers, strlen(body), body);
}

static inline char *fake_token(struct fake_github *f)
{
	char expires[RFC3339_BYTES], *body, *answer;

	if (f->status_of_token) {
		body = xasprintf("%d No", f->status_of_token);
		answer = fake_answer(body, "", "{\"message\":\"no token\"}");
		free(body);
		return answer;
	}
	rfc3339_format(clock_wall_ms() + f->token_life_s * 1000, expires);
	body = xasprintf("{\"token\":\"token-%d\",\"expires_at\":\"%s\"}", ++f->n_tokens, expires);
	answer = fake_answer("201 Created", "", body);
	free(body);
	return answer;
}

static inline bool fake_is_refused(const struct fake_github *f, const char *request)
{
	const char *at = strstr(request, "Bearer token-");

	return at && strtol(at + 13, NULL, 10) <= f->n_bad_tokens;
}

/* Under the lock. */
static inline char *fake_reply(struct fake_github *f, const char *request)
{
	if (strncmp(request, "GET /app ", 9) == 0)
		return fake_answer("200 OK", "", "{\"id\":7,\"slug\":\"outpost-test\"}");
	if (strstr(request, "/installation HTTP"))
		return f->status_of_installation
			   ? fake_answer("404 Not Found", "", "{\"message\":\"Not Found\"}")
			   : fake_answer(
				 "200 OK", "", strstr(request, "/repos/other/") ? "{\"id\":43}" : "{\"id\":42}");
	if (strstr(request, "/access_tokens HTTP"))
		return fake_token(f);
	if (fake_is_refused(f, request))
		return fake_answer("401 Unauthorized", "", "{\"message\":\"Bad credentials\"}");
	return f->answer ? f->answer(f, request) : NULL;
}

static inline void fake_serve(struct loopback *lb, int fd)
{
	static const char none[] = "HTTP/1.1 204 No Content\r\n\r\n";
	struct fake_github *f = lb->owner;
	struct buf in = BUF_INIT(1 << 20);

	while (loopback_read_request(lb, fd, &in)) {
		int n = ++f->n_at_once;
		char *reply;

		pthread_mutex_lock(&f->lock);
		if (n > f->n_at_once_max)
			f->n_at_once_max = n;
		buf_append(&f->log, in.data,
		    strcspn(strchr(in.data, ' ') + 1, " ") + (size_t)(strchr(in.data, ' ') + 1 - in.data));
		buf_append_char(&f->log, '\n');
		reply = fake_reply(f, in.data);
		pthread_mutex_unlock(&f->lock);
		f->n_at_once--;
		loopback_send(fd, reply ? reply : none, reply ? strlen(reply) : sizeof(none) - 1);
		free(reply);
	}
	buf_release(&in);
}

static inline struct github_options fake_options(const struct fake_github *f)
{
	return (struct github_options){
	    .api_url = f->url,
	    .app_id = 7,
	    .private_key_pem = f->pem,
	    .writes_per_minute = 80,
	    .max_concurrent = 50,
	};
}

static inline int fake_set_up(void **state)
{
	struct fake_github *f = xcalloc(1, sizeof(*f));
	struct github_options o;
	EVP_PKEY *key = shared_rsa_key();
	char *pem;

	unsetenv("http_proxy");
	pem = pem_pkcs1(key);
	f->pem = secret_of(pem);
	free(pem);
	EVP_PKEY_free(key);
	pthread_mutex_init(&f->lock, NULL);
	buf_init(&f->log, 1 << 20);
	f->token_life_s = 3600;
	f->lb = loopback_start(fake_serve, f);
	f->url = xasprintf("http://127.0.0.1:%d", f->lb->port);
	f->loop = loop_new();
	f->http = http_client_new(f->loop, "outpost/test");
	o = fake_options(f);
	*state = f;
	return github_new(f->loop, f->http, &o, &f->github, NULL);
}

/* Sets another behaviour from now on. */
#define fake_set(f, field, value)                                                                                      \
	do {                                                                                                           \
		pthread_mutex_lock(&(f)->lock);                                                                        \
		(f)->field = (value);                                                                                  \
		pthread_mutex_unlock(&(f)->lock);                                                                      \
	} while (0)

static inline void fake_on_closed(void *owner) { *(bool *)owner = true; }

static inline void fake_close_github(struct fake_github *f)
{
	bool is_closed = false;

	github_close(f->github, fake_on_closed, &is_closed);
	loop_run_until(f->loop, &is_closed);
	f->github = NULL;
}

static inline int fake_tear_down(void **state)
{
	struct fake_github *f = *state;
	bool is_closed = false;

	if (f->github)
		fake_close_github(f);
	http_client_close(f->http, fake_on_closed, &is_closed);
	loop_run_until(f->loop, &is_closed);
	loop_free(f->loop);
	loopback_stop(f->lb);
	pthread_mutex_destroy(&f->lock);
	buf_release(&f->log);
	free(f->url);
	secret_unref(f->pem);
	free(f);
	return 0;
}

/* The number of lines in the log that begin with `line` ("POST /repos/…"). */
static inline int fake_count(struct fake_github *f, const char *line)
{
	int n = 0;

	pthread_mutex_lock(&f->lock);
	for (const char *at = buf_str(&f->log); *at; at = strchr(at, '\n') + 1)
		n += strncmp(at, line, strlen(line)) == 0;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* ---- calls ---- */
struct one {
	struct github_call call;
	bool is_done;
};

static inline void one_done(struct github_call *call)
{
	struct one *o = CONTAINER_OF(call, struct one, call);

	assert_false(o->is_done);
	o->is_done = true;
}

static inline void one_dispatch(struct fake_github *f, struct one *o, const char *repository)
{
	o->is_done = false;
	o->call.done = one_done;
	github_dispatch(f->github, &o->call, repository, "{}", 2);
	assert_false(o->is_done);
}

static inline void one_wait(struct fake_github *f, struct one *o)
{
	loop_run_until(f->loop, &o->is_done);
	assert_true(o->is_done);
}
