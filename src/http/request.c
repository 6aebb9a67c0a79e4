/* A request as its handler sees it. */
#include "http/request.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "http/client_address.h"
#include "http/client_group.h"
#include "http/server_internal.h"

int http_request_new(struct http_conn *c, struct http_head *head, struct http_segments *ret_path,
    struct http_request **ret)
{
	struct http_request *r = xcalloc(1, sizeof(*r));
	char *target = head->text + head->target;
	size_t n = strcspn(target, "?");

	r->conn = c;
	r->began_us = (int64_t)(uv_hrtime() / 1000);
	r->head = head;
	http_client_address_find(c, head, r->address);
	r->is_unix = c->is_unix;
	r->is_tls = c->session != NULL;
	r->is_head = str_eq(head->method, "HEAD");
	r->query = target[n] ? target + n + 1 : "";
	r->path = xmalloc(2 * n + 4);
	*ret = r;
	*ret_path = (struct http_segments){0};
	if (http_percent_decode(target, n, HTTP_DECODE_PATH, r->path) < 0) {
		r->path[0] = '\0';
		return ERR_INVALID;
	}
	if (target[0] != '/')
		return ERR_NOT_FOUND;
	return http_segments_split(target, n, r->path + n + 1, ret_path);
}

void http_request_free(struct http_request *r)
{
	http_body_release(&r->body);
	if (r->shared)
		http_shared_leave(r);
	free(r->head);
	free(r->path);
	free(r);
}

void http_request_lose(struct http_request *r)
{
	/* It is memory of the handler's from here, and the account may go before it. */
	http_body_leave_account(&r->body);
	r->conn = NULL;
	/* The server's routes are freed with the server, which waits for connections alone. */
	if (r->route) {
		r->kept_route = *r->route;
		r->route = &r->kept_route;
	}
	if (r->on_gone)
		r->on_gone(r);
	else if (r->stage != HTTP_REQUEST_ARRIVING)
		return;
	http_request_free(r);
}

const char *http_method(const struct http_request *r)
{
	return r->head->method;
}

const char *http_target(const struct http_request *r)
{
	return r->head->text + r->head->target;
}

const char *http_path(const struct http_request *r)
{
	return r->path;
}

const char *http_query(const struct http_request *r)
{
	return r->query;
}

static bool copy_decoded(const char *s, size_t n, char *out, size_t out_bytes)
{
	char *text = xmalloc(n + 1);
	int64_t len = http_percent_decode(s, n, HTTP_DECODE_FORM, text);
	bool fits = len >= 0 && (size_t)len < out_bytes;

	if (fits)
		memcpy(out, text, (size_t)len + 1);
	free(text);
	return fits;
}

int http_query_nth(
    const struct http_request *r, const char *name, int i, char *out, size_t out_bytes)
{
	size_t name_bytes = strlen(name);
	const char *at = r->query;

	while (*at) {
		size_t n = strcspn(at, "&");

		if (n > name_bytes && memcmp(at, name, name_bytes) == 0 && at[name_bytes] == '=' &&
		    i-- == 0)
			return copy_decoded(at + name_bytes + 1, n - name_bytes - 1, out, out_bytes)
				   ? 0
				   : ERR_INVALID;
		at += n;
		at += *at == '&';
	}
	return ERR_NOT_FOUND;
}

bool http_query_get(const struct http_request *r, const char *name, char *out, size_t out_bytes)
{
	return http_query_nth(r, name, 0, out, out_bytes) == 0;
}

const struct http_route *http_route_of(const struct http_request *r)
{
	return r->route;
}

const char *http_segment(const struct http_request *r, int i)
{
	return i >= 0 && i < r->captures.n ? r->captures.at[i] : NULL;
}

const char *http_header(const struct http_request *r, const char *name)
{
	return http_head_get(r->head, name);
}

const char *http_body(const struct http_request *r, size_t *ret_bytes)
{
	*ret_bytes = r->body.len;
	if (!r->body.data)
		return "";
	r->body.data[r->body.len] = '\0';
	return r->body.data;
}

char *http_take_body(struct http_request *r, size_t *ret_bytes)
{
	return http_body_take(&r->body, ret_bytes);
}

void http_recycle_body(char *body)
{
	http_block_give(body);
}

void http_pause_body(struct http_request *r)
{
	r->is_paused = true;
}

void http_resume_body(struct http_request *r)
{
	r->is_paused = false;
	if (r->conn)
		http_conn_make_due(r->conn);
}

const char *http_client_address(const struct http_request *r)
{
	struct http_request *own = (struct http_request *)(uintptr_t)r;

	if (r->client[0])
		return r->client;
	if (r->is_unix)
		snprintf(own->client, sizeof(own->client), "unix");
	else
		http_address_format(r->address, own->client);
	return r->client;
}

struct http_client_group http_client_group(const struct http_request *r)
{
	struct http_client_group g = http_client_group_of(r->address);

	/* No address has this group: the lower half of an IPv6 group is zero. */
	g.address[15] |= r->is_unix;
	return g;
}

void http_note_authenticated(struct http_request *r)
{
	struct http_client_group g = http_client_group(r);

	if (!r->conn)
		return;
	r->conn->is_authenticated = true;
	http_server_note_known(r->conn->server, &g);
}

bool http_is_tls(const struct http_request *r)
{
	return r->is_tls;
}

void http_set_user(struct http_request *r, void *user)
{
	r->user = user;
}

void *http_user(const struct http_request *r)
{
	return r->user;
}

void http_on_gone(struct http_request *r, void (*on_gone)(struct http_request *r))
{
	r->on_gone = on_gone;
}

bool http_client_has_ended(const struct http_request *r)
{
	return !r->conn || r->conn->is_eof;
}
