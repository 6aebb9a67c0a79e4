/* The real parts that a handler of requests needs, in one process: loop, store, server, client and a loaded
 * configuration, in the folder of config_folder.h. */
#pragma once

#include "config_folder.h"
#include "empty_store.h"

#include "db/store.h"
#include "http/client.h"
#include "http/server.h"
#include "loop/loop.h"
#include "store/maintenance.h"

struct parts {
	struct loop *loop;
	struct store *store; /* NULL: closed already */
	struct http_server *server;
	struct http_client *client;
	struct config *config;
	char *url;            /* http://127.0.0.1:PORT */
	size_t max_queue_ops; /* of the store; 0: its default. Set before parts_open() */
};

/* Call folder_setup() and write all files that the configuration names before it. */
static inline void parts_open(struct parts *p)
{
	const struct store_options options = {
	    .state_dir = "state",
	    .recover = store_recover,
	    .after_silence = store_after_silence,
	    .max_queue_ops = p->max_queue_ops,
	};
	struct error e = {0};
	char *address;

	log_setup(LOG_ERROR, LOG_TEXT);
	p->config = folder_load();
	p->loop = loop_new();
	empty_store_put("state");
	if (store_open(p->loop, &options, &p->store, &e))
		fail_msg("%s", e.text);
	p->server = http_server_new(p->loop, &HTTP_LIMITS_DEFAULT);
	p->client = http_client_new(p->loop, "outpost-test");
	assert_int_equal(http_server_listen(p->server, "127.0.0.1:0", &address, &e), 0);
	p->url = xasprintf("http://%s", address);
	free(address);
}

static inline void parts_on_closed(void *owner) { *(bool *)owner = true; }

static inline void parts_close_store(struct parts *p)
{
	bool is_closed = false;

	store_close(p->store, parts_on_closed, &is_closed);
	loop_run_until(p->loop, &is_closed);
	p->store = NULL;
}

static inline void parts_close_server(struct parts *p)
{
	bool is_closed = false;

	http_server_close(p->server, 1000, parts_on_closed, &is_closed);
	loop_run_until(p->loop, &is_closed);
}

/* Call it after parts_close_server(), when everything built on the parts is closed. */
static inline void parts_close(struct parts *p)
{
	bool is_closed = false;

	http_client_close(p->client, parts_on_closed, &is_closed);
	loop_run_until(p->loop, &is_closed);
	if (p->store)
		parts_close_store(p);
	loop_stop(p->loop);
	loop_run(p->loop);
	loop_free(p->loop);
	config_unref(p->config);
	free(p->url);
}

/* One request; several may be in flight. */
struct ask {
	struct http_call call;
	char *url;
	bool is_done;
};

static inline void ask_on_done(struct http_call *call) { CONTAINER_OF(call, struct ask, call)->is_done = true; }

/* headers and body stay until it is done. */
static inline void ask_start(
    struct parts *p, struct ask *a, const char *path, const char *const *headers, const char *body, size_t n)
{
	a->is_done = false;
	a->url = xasprintf("%s%s", p->url, path);
	a->call = (struct http_call){
	    .method = "POST",
	    .url = a->url,
	    .headers = headers,
	    .body = body,
	    .body_bytes = n,
	    .allow_plain_http = true,
	    .done = ask_on_done,
	};
	http_call_start(p->client, &a->call);
}

/* Runs the loop until the answer has arrived; returns its status. The answer is a->call.answer. */
static inline int ask_wait(struct parts *p, struct ask *a)
{
	loop_run_until(p->loop, &a->is_done);
	if (a->call.err)
		fail_msg("%s: %s", a->url, a->call.why.text);
	return a->call.status;
}

static inline void ask_release(struct ask *a)
{
	http_call_release(&a->call);
	free(a->url);
}

static inline bool ask_has_header(const struct ask *a, const char *name)
{
	char value[64];

	return http_call_header(&a->call, name, value, sizeof value);
}
