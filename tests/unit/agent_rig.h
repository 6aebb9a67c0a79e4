/* An agent in this process and a fake server on another thread, whose answers the test chooses. By default the server
 * grants one job and accepts everything. The agent ends by itself after that job. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "agent/agent.h"
#include "agent/journal.h"
#include "http/server.h"
#include "steps/job_folder.h"

enum ask { ASK_CLAIM, ASK_RENEW, ASK_RETURN, ASK_LOG, ASK_REPORT, ASK_END, N_ASKS };

struct fake {
	/* Answers the n-th request (from 0) of its kind, or returns false for the usual answer. Runs on the server's
	 * thread. */
	bool (*on)(struct fake *f, enum ask kind, int n, struct http_request *r);
	const char *job_id; /* of the offer; NULL: 42 */
	const char *level;  /* of the agent's log; NULL: error */

	/* the requests; read them after the agent has ended */
	int n[N_ASKS];
	struct buf log, order; /* order: a letter a request, c r R l p e */
	bool is_log_whole;
	char *report, *end;

	struct loop *loop;
	struct http_server *server;
	struct inbox *inbox;
	struct inbox_item over;
	char *address;
	pthread_t thread;
	char dir[64];
	char *jobs_dir;
};

static inline void fake_json(struct http_request *r, int status, const char *text)
{
	http_respond(r, status, "application/json", NULL, text, strlen(text));
}

static inline bool fake_scripted(struct fake *f, enum ask kind, struct http_request *r)
{
	buf_append_char(&f->order, "crRlpe"[kind]);
	return f->on && f->on(f, kind, f->n[kind]++, r);
}

/* The lease that the server grants; free(). */
static inline char *fake_lease(const struct fake *f)
{
	return xasprintf("{\"lease_id\": \"l1\", \"lease_ms\": 60000, \"attempt\": 1, \"job_id\": %s, "
			 "\"dispatch_id\": \"d1\", \"accelerator\": \"npu\", \"runner\": \"farm\", \"run_id\": "
			 "\"d1\", \"visibility\": \"public\", \"change\": {\"kind\": \"push\", \"repository\": "
			 "\"pytorch/pytorch\", \"head_sha\": \"0123456789012345678901234567890123456789\", "
			 "\"event_type\": \"push\"}}",
	    f->job_id ? f->job_id : "42");
}

static inline void fake_offer(struct fake *f, struct http_request *r)
{
	char *text = fake_lease(f);

	fake_json(r, 200, text);
	free(text);
}

static inline void fake_on_claim(struct http_request *r, void *owner)
{
	if (!fake_scripted(owner, ASK_CLAIM, r))
		fake_offer(owner, r);
}

static inline void fake_on_renew(struct http_request *r, void *owner)
{
	if (!fake_scripted(owner, ASK_RENEW, r))
		fake_json(r, 200, "{\"lease\": \"active\", \"lease_ms\": 60000}");
}

static inline void fake_on_return(struct http_request *r, void *owner)
{
	if (!fake_scripted(owner, ASK_RETURN, r))
		fake_json(r, 200, "{\"ok\": true}");
}

/* The protocol's rule: skip bytes that the server already has. */
static inline void fake_on_log(struct http_request *r, void *owner)
{
	struct fake *f = owner;
	char offset_text[32] = "0", last[4] = "", answer[64];
	int64_t offset;
	size_t n, there;
	const char *body = http_body(r, &n);

	if (fake_scripted(f, ASK_LOG, r))
		return;
	http_query_get(r, "offset", offset_text, sizeof(offset_text));
	http_query_get(r, "last", last, sizeof(last));
	assert(parse_int64(offset_text, &offset) == 0);
	if ((size_t)offset > f->log.len) {
		snprintf(answer, sizeof(answer), "{\"detail\": \"gap\", \"bytes\": %zu}", f->log.len);
		fake_json(r, 409, answer);
		return;
	}
	there = f->log.len - (size_t)offset;
	if (n > there)
		buf_append(&f->log, body + there, n - there);
	f->is_log_whole = f->is_log_whole || *last;
	snprintf(answer, sizeof(answer), "{\"ok\": true, \"bytes\": %zu}", f->log.len);
	fake_json(r, 200, answer);
}

static inline void fake_on_report(struct http_request *r, void *owner)
{
	struct fake *f = owner;
	size_t n;

	if (fake_scripted(f, ASK_REPORT, r))
		return;
	free(f->report);
	f->report = http_detach_body(r, &n);
	fake_json(r, 200, "{\"ok\": true, \"tests\": 1, \"cut\": 0}");
}

static inline void fake_on_end(struct http_request *r, void *owner)
{
	struct fake *f = owner;
	size_t n;

	free(f->end);
	f->end = xstrdup(http_body(r, &n));
	if (!fake_scripted(f, ASK_END, r))
		fake_json(r, 200, "{\"ok\": true, \"status\": \"completed\", \"job\": \"42\"}");
}

/* ---- the server's thread ---- */

static inline void fake_on_closed(void *owner)
{
	struct fake *f = owner;

	inbox_close(f->inbox);
	loop_stop(f->loop);
}

static inline void fake_on_over(struct inbox_item *item)
{
	struct fake *f = CONTAINER_OF(item, struct fake, over);

	http_server_close(f->server, 1000, fake_on_closed, f);
}

static inline void *fake_thread(void *arg)
{
	struct fake *f = arg;

	loop_run(f->loop);
	return NULL;
}

static inline void fake_open(struct fake *f)
{
	const struct http_route routes[] = {
	    {.method = "POST", .pattern = "/api/v1/runner/claim", .on_request = fake_on_claim},
	    {.method = "POST", .pattern = "/api/v1/runner/leases/l1/renew", .on_request = fake_on_renew},
	    {.method = "POST", .pattern = "/api/v1/runner/leases/l1/return", .on_request = fake_on_return},
	    {.method = "PUT", .pattern = "/api/v1/jobs/42/log", .on_request = fake_on_log},
	    {.method = "PUT", .pattern = "/api/v1/jobs/42/report", .on_request = fake_on_report},
	    {.method = "POST", .pattern = "/api/v1/dispatches/d1/jobs", .on_request = fake_on_end},
	};
	struct error e = {0};
	int rc;

	buf_init(&f->log, 64 << 20);
	buf_init(&f->order, 1 << 20);
	f->loop = loop_new();
	f->inbox = inbox_new(f->loop);
	f->over.on_loop = fake_on_over;
	f->server = http_server_new(f->loop, &HTTP_LIMITS_DEFAULT);
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		struct http_route r = routes[i];

		r.owner = f;
		r.max_body_bytes = 32 << 20;
		http_server_route(f->server, &r);
	}
	rc = http_server_listen(f->server, "127.0.0.1:0", &f->address, &e);
	assert(rc == 0);
	rc = pthread_create(&f->thread, NULL, fake_thread, f);
	assert(rc == 0);
	snprintf(f->dir, sizeof(f->dir), "/tmp/outpost-agent-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->jobs_dir = xasprintf("%s/work/jobs", f->dir);
}

/* ---- the agent ---- */

static inline void fake_write(struct fake *f, const char *name, const char *text)
{
	struct error e = {0};
	char *path = path_join(f->dir, name);

	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &e), 0);
	free(path);
}

/* Runs an agent whose one step is this shell text; its exit code. */
static inline int fake_run_until(struct fake *f, const char *step, enum agent_end end)
{
	char *yml = xasprintf("server: http://%s\n"
			      "name: m1\ntoken_file: token\naccelerator: npu\nwork_dir: work\n"
			      "sandbox: none\nreport: {files: [\"results/*.xml\"]}\n"
			      "log: {level: %s}\nsteps:\n  - name: one\n    run: |\n      %s\n",
	    f->address, f->level ? f->level : "error", step);
	char *path = path_join(f->dir, "runner.yml");
	int rc;

	fake_write(f, "token", "secret-token\n");
	fake_write(f, "runner.yml", yml);
	rc = agent_run(path, end);
	prctl(PR_SET_DUMPABLE, 1); /* the leak checker wants to look into this process */
	free(path);
	free(yml);
	return rc;
}

/* To the end of its first job. */
static inline int fake_run(struct fake *f, const char *step) { return fake_run_until(f, step, AGENT_ONCE); }

/* Call it after the last agent, before the test reads the requests. */
static inline void fake_stop(struct fake *f)
{
	inbox_post(f->inbox, &f->over);
	pthread_join(f->thread, NULL);
	loop_free(f->loop);
}

static inline void fake_release(struct fake *f)
{
	struct error e = {0};

	assert_int_equal(job_folder_remove(f->dir, &e), 0);
	buf_release(&f->log);
	buf_release(&f->order);
	free(f->report);
	free(f->end);
	free(f->address);
	free(f->jobs_dir);
}

/* The only job's folder below jobs/ (or jobs/rejected). free() */
static inline char *fake_job(struct fake *f, const char *sub)
{
	struct journal j = {.jobs_dir = xasprintf("%s%s", f->jobs_dir, sub)};
	char **names, *folder;

	assert_int_equal(journal_list(j.jobs_dir, &names, NULL), 0);
	assert_int_equal(strv_len((const char *const *)names), 1);
	folder = path_join(j.jobs_dir, names[0]);
	strv_free(names);
	free(j.jobs_dir);
	return folder;
}

/* The text of KEY in the last end that was sent; free(). NULL: it has no such key. */
static inline char *fake_end_field(const struct fake *f, const char *key)
{
	json_t *v;
	char *text;

	assert_non_null(f->end);
	assert_int_equal(json_parse(f->end, strlen(f->end), &v, NULL), 0);
	text = xstrdup_or_null(json_get_str(v, key));
	json_decref(v);
	return text;
}
