#include "registry/smart_http.h"

#include <git2/sys/transport.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"
#include "http/client_pull.h"

enum { REQUEST_BYTES_MAX = 16 << 20, SHOWN_CHARS = 200 };

struct service {
	const char *method, *path, *request_type, *answer_type;
};

static const struct service list_refs = {.method = "GET",
    .path = "/info/refs?service=git-upload-pack",
    .answer_type = "application/x-git-upload-pack-advertisement"};
static const struct service upload_pack = {.method = "POST",
    .path = "/git-upload-pack",
    .request_type = "Content-Type: application/x-git-upload-pack-request",
    .answer_type = "application/x-git-upload-pack-result"};

/* One server; libgit2 asks it one thing after the other. */
struct subtransport {
	git_smart_subtransport parent; /* libgit2 sees only this */
	struct bounds *bounds;
	struct http_puller *puller;
};

/* One request and its answer. */
struct exchange {
	git_smart_subtransport_stream parent; /* libgit2 sees only this */
	struct subtransport *transport;
	const struct service *service;
	char *url;
	struct buf request;
	struct http_call call;
	bool is_sent;
};

static int fail(struct bounds *b, int err, const char *why)
{
	error_set(&b->why, err, "%s", why);
	git_error_set_str(GIT_ERROR_NET, b->why.text);
	return -1;
}

/* The bounds have their own words for an exchange that was ended. An address is not named: whether a
 * host name has an internal address is not for a vendor to learn. */
static int fail_call(struct bounds *b, const struct http_call *call)
{
	switch (call->err) {
	case ERR_CANCELLED:
		return fail(b, ERR_CANCELLED, "broken off: shutting down");
	case ERR_TIMEOUT:
		return fail(b, ERR_TIMEOUT, "took too long, broken off");
	case ERR_DENIED:
		return fail(b, ERR_DENIED, "its host's address may not be reached");
	default:
		return fail(b, ERR_NETWORK, call->why.text);
	}
}

/* A header that the server wrote, as one clean line for a reason. */
static void quote_header(const struct http_call *call, const char *name, char *out, size_t n)
{
	char value[1024] = "";
	struct buf line = BUF_INIT(n - 1);

	http_call_header(call, name, value, sizeof(value));
	escape_line(&line, value, SHOWN_CHARS);
	snprintf(out, n, "%s", buf_str(&line));
	buf_release(&line);
}

static int check_answer(const struct exchange *x)
{
	struct bounds *b = x->transport->bounds;
	char shown[SHOWN_CHARS * 2], why[sizeof(b->why.text)], type[128] = "";

	if (x->call.status >= 300 && x->call.status < 400) {
		quote_header(&x->call, "Location", shown, sizeof(shown));
		snprintf(why, sizeof(why),
		    "it is redirected to %s, which is not followed: give the new address", shown);
		return fail(b, ERR_DENIED, why);
	}
	if (x->call.status != 200) {
		snprintf(why, sizeof(why), "the server answered %d", x->call.status);
		return fail(b, ERR_NETWORK, why);
	}
	http_call_header(&x->call, "Content-Type", type, sizeof(type));
	if (strcasecmp(type, x->service->answer_type) != 0)
		return fail(b, ERR_NETWORK,
		    "the answer is not git's: the server has no such repository, or does not "
		    "speak git's smart HTTP protocol");
	return 0;
}

static int send_request(struct exchange *x)
{
	struct subtransport *t = x->transport;
	struct bounds *b = t->bounds;
	const char *headers[] = {x->service->request_type, NULL};
	int64_t left_ms = b->deadline_mono_ms - clock_mono_ms();

	x->is_sent = true;
	if (bounds_check(b))
		return fail(b, b->why.code, b->why.text);
	x->call = (struct http_call){
	    .method = x->service->method,
	    .url = x->url,
	    .headers = headers,
	    .body = x->service->request_type ? buf_str(&x->request) : NULL,
	    .body_bytes = x->request.len,
	    .total_timeout_ms = left_ms > 0 ? left_ms : 1,
	    .allow_address = b->allow_address,
	    .allow_owner = b->allow_owner,
	    .allow_plain_http = true, /* the configuration and allow_address decide */
	};
	if (http_pull_start(t->puller, &x->call, b->cancel_fd))
		return fail_call(b, &x->call);
	return check_answer(x);
}

/* ---- what libgit2 calls ---- */

static int exchange_read(
    git_smart_subtransport_stream *parent, char *to, size_t size, size_t *ret_n)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);
	struct bounds *b = x->transport->bounds;

	*ret_n = 0;
	if (!x->is_sent && send_request(x))
		return -1;
	if (http_pull_read(x->transport->puller, to, size, ret_n))
		return fail_call(b, &x->call);
	return bounds_count(b, *ret_n) ? fail(b, b->why.code, b->why.text) : 0;
}

static int exchange_write(git_smart_subtransport_stream *parent, const char *data, size_t n)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);

	if (buf_append(&x->request, data, n))
		return fail(x->transport->bounds, ERR_TOO_BIG, "the request is too long");
	return 0;
}

static void exchange_free(git_smart_subtransport_stream *parent)
{
	struct exchange *x = CONTAINER_OF(parent, struct exchange, parent);

	http_pull_end(x->transport->puller);
	http_call_release(&x->call);
	buf_release(&x->request);
	free(x->url);
	free(x);
}

static int subtransport_action(git_smart_subtransport_stream **ret, git_smart_subtransport *parent,
    const char *url, git_smart_service_t action)
{
	struct subtransport *t = CONTAINER_OF(parent, struct subtransport, parent);
	size_t n = strlen(url);
	struct exchange *x;

	if (action != GIT_SERVICE_UPLOADPACK_LS && action != GIT_SERVICE_UPLOADPACK)
		return fail(t->bounds, ERR_INVALID, "nothing is pushed from here");
	while (n && url[n - 1] == '/')
		n--;
	x = xcalloc(1, sizeof(*x));
	x->parent = (git_smart_subtransport_stream){.subtransport = parent,
	    .read = exchange_read,
	    .write = exchange_write,
	    .free = exchange_free};
	x->transport = t;
	x->service = action == GIT_SERVICE_UPLOADPACK_LS ? &list_refs : &upload_pack;
	x->url = xasprintf("%.*s%s", (int)n, url, x->service->path);
	buf_init(&x->request, REQUEST_BYTES_MAX);
	*ret = &x->parent;
	return 0;
}

static int subtransport_close(git_smart_subtransport *parent)
{
	(void)parent;
	return 0;
}

static void subtransport_free(git_smart_subtransport *parent)
{
	struct subtransport *t = CONTAINER_OF(parent, struct subtransport, parent);

	http_puller_free(t->puller);
	free(t);
}

static int subtransport_new(git_smart_subtransport **ret, git_transport *owner, void *bounds)
{
	struct subtransport *t = xcalloc(1, sizeof(*t));

	(void)owner;
	t->parent = (git_smart_subtransport){
	    .action = subtransport_action, .close = subtransport_close, .free = subtransport_free};
	t->bounds = bounds;
	t->puller = http_puller_new("git/2.0 (outpost)"); /* some servers look for "git/" */
	*ret = &t->parent;
	return 0;
}

int smart_http_transport(git_transport **ret, git_remote *remote, void *bounds)
{
	git_smart_subtransport_definition http = {
	    .callback = subtransport_new, .rpc = 1, .param = bounds};
	const char *url = git_remote_url(remote);

	if (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0)
		return git_transport_smart(ret, remote, &http);
	return git_transport_new(ret, remote, url);
}
