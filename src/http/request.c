/* A request as its handler sees it, its route, and the memory of its body. */
#include "http/request.h"

#include <malloc.h>

#include "http/server_internal.h"

/* ---- routes ---- */

void http_routes_add(struct http_routes *all, const struct http_route *route)
{
	size_t n = strlen(route->pattern);
	struct http_route_entry *e = ARRAY_PUSH(all->at, all->n);

	*e = (struct http_route_entry){.route = *route, .memory = xmalloc(n + 2)};
	int rc = http_segments_split(route->pattern, n, e->memory, &e->pattern);
	assert(rc == 0);
}

void http_routes_release(struct http_routes *all)
{
	for (int i = 0; i < all->n; i++)
		free(all->at[i].memory);
	free(all->at);
	*all = (struct http_routes){0};
}

int http_segments_split(const char *path, size_t n, char *memory, struct http_segments *ret)
{
	const char *end = path + n;

	*ret = (struct http_segments){0};
	while (path < end) {
		const char *from = path + 1; /* behind the "/" */
		const char *slash = memchr(from, '/', (size_t)(end - from));
		size_t len = (size_t)((slash ? slash : end) - from);
		int64_t decoded = http_percent_decode(from, len, HTTP_DECODE_PATH, memory);

		path = from + len;
		if (decoded < 0)
			return ERR_INVALID;
		if (len == 0 && path == end)
			break;
		if (ret->n == HTTP_MAX_SEGMENTS)
			return ERR_NOT_FOUND;
		ret->at[ret->n++] = memory;
		memory += decoded + 1;
	}
	return 0;
}

static bool is_route_match(
    const struct http_segments *pattern, const struct http_segments *path, struct http_segments *captures)
{
	captures->n = 0;
	if (pattern->n != path->n)
		return false;
	for (int i = 0; i < pattern->n; i++) {
		if (pattern->at[i][0] == '{' && path->at[i][0] != '\0')
			captures->at[captures->n++] = path->at[i];
		else if (!str_eq(pattern->at[i], path->at[i]))
			return false;
	}
	return true;
}

int http_routes_find(const struct http_routes *all, const char *method, const struct http_segments *path,
    const struct http_route **ret, struct http_segments *captures, char *allow, size_t allow_bytes)
{
	allow[0] = '\0';
	for (int i = 0; i < all->n; i++) {
		const struct http_route *route = &all->at[i].route;

		if (!is_route_match(&all->at[i].pattern, path, captures))
			continue;
		if (str_eq(route->method, method) || (str_eq(route->method, "GET") && str_eq(method, "HEAD"))) {
			*ret = route;
			return 0;
		}
		size_t len = strlen(allow);
		snprintf(allow + len, allow_bytes - len, "%s%s%s", len ? ", " : "", route->method,
		    str_eq(route->method, "GET") ? ", HEAD" : "");
	}
	if (allow[0])
		return ERR_DENIED;
	if (!all->fallback.on_request || (!str_eq(method, "GET") && !str_eq(method, "HEAD")))
		return ERR_NOT_FOUND;
	captures->n = 0;
	*ret = &all->fallback;
	return 0;
}

/* ---- bodies ---- */

#define MAX_SPARE 64

static _Thread_local struct {
	char *spare[MAX_SPARE]; /* owned blocks of HTTP_BODY_BLOCK_BYTES or more */
	int n_spare;
	int n_spare_low; /* fewest since the last trim: that many were not needed */
	int n_holders;
} blocks;

static char *reuse_block(void)
{
	if (blocks.n_spare == 0)
		return xmalloc(HTTP_BODY_BLOCK_BYTES);
	blocks.n_spare--;
	if (blocks.n_spare < blocks.n_spare_low)
		blocks.n_spare_low = blocks.n_spare;
	return blocks.spare[blocks.n_spare];
}

void http_block_give(char *data)
{
	/* Only blocks of about the common size are worth keeping. */
	size_t bytes = data ? malloc_usable_size(data) : 0;

	if (blocks.n_holders && bytes >= HTTP_BODY_BLOCK_BYTES && bytes < 2 * HTTP_BODY_BLOCK_BYTES &&
	    blocks.n_spare < MAX_SPARE)
		blocks.spare[blocks.n_spare++] = data;
	else
		free(data);
}

void http_blocks_trim(void)
{
	for (; blocks.n_spare_low > 0 && blocks.n_spare > 0; blocks.n_spare_low--)
		free(blocks.spare[--blocks.n_spare]);
	blocks.n_spare_low = blocks.n_spare;
}

void http_blocks_hold(void) { blocks.n_holders++; }

void http_blocks_release(void)
{
	if (--blocks.n_holders)
		return;
	while (blocks.n_spare)
		free(blocks.spare[--blocks.n_spare]);
	blocks.n_spare_low = 0;
}

int http_body_grow(struct http_body *b, bool *ret_is_share)
{
	struct http_bodies *all = b->account;
	bool is_small = b->expected && b->expected <= HTTP_BODY_SMALL_BYTES;
	size_t bytes = b->cap ? (b->cap + 1) * 2 : HTTP_BODY_BLOCK_BYTES; /* with the NUL */

	if (b->len < b->cap)
		return 0;
	if (b->expected && b->cap && bytes > b->expected + 1)
		bytes = b->expected + 1;
	size_t more = bytes - 1 - b->cap;
	*ret_is_share = http_group_amount(all->of_one, &b->group) + (int64_t)more > (int64_t)all->max_bytes_of_one;
	if (*ret_is_share || all->in_use_bytes + more + (is_small ? 0 : all->reserve_bytes) > all->max_bytes)
		return ERR_BUSY;
	all->in_use_bytes += more;
	http_group_amount_add(all->of_one, &b->group, (int64_t)more);
	b->data = b->cap ? xrealloc(b->data, bytes) : reuse_block();
	b->cap = bytes - 1;
	return 0;
}

void http_body_leave_account(struct http_body *b)
{
	if (!b->account)
		return;
	b->account->in_use_bytes -= b->cap;
	http_group_amount_add(b->account->of_one, &b->group, -(int64_t)b->cap);
	b->account = NULL;
}

char *http_body_detach(struct http_body *b, size_t *ret_bytes)
{
	char *data = b->data ? b->data : xstrdup("");

	http_body_leave_account(b);
	data[b->len] = '\0';
	*ret_bytes = b->len;
	*b = (struct http_body){0};
	return data;
}

void http_body_release(struct http_body *b)
{
	size_t bytes;

	if (b->data)
		http_block_give(http_body_detach(b, &bytes));
}

/* ---- the request ---- */

int http_request_new(
    struct http_conn *c, struct http_head *head, struct http_segments *ret_path, struct http_request **ret)
{
	struct http_request *r = xcalloc(1, sizeof(*r));
	char *target = head->text + head->target;
	size_t n = strcspn(target, "?");

	r->conn = c;
	r->began_us = (int64_t)(uv_hrtime() / 1000);
	r->head = head;
	http_client_address_find(c, head, r->address);
	r->is_unix = c->is_unix;
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
	FREE_ALL(r->head, r->path, r);
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

const char *http_method(const struct http_request *r) { return r->head->method; }

const char *http_target(const struct http_request *r) { return r->head->text + r->head->target; }

const char *http_path(const struct http_request *r) { return r->path; }

const char *http_query(const struct http_request *r) { return r->query; }

int http_query_nth(const struct http_request *r, const char *name, int i, char *out, size_t out_bytes)
{
	size_t name_bytes = strlen(name);
	const char *at = r->query;

	while (*at) {
		size_t n = strcspn(at, "&");

		if (n > name_bytes && memcmp(at, name, name_bytes) == 0 && at[name_bytes] == '=' && i-- == 0) {
			char *text = xmalloc(n - name_bytes);
			int64_t len =
			    http_percent_decode(at + name_bytes + 1, n - name_bytes - 1, HTTP_DECODE_FORM, text);
			bool fits = len >= 0 && (size_t)len < out_bytes;

			if (fits)
				memcpy(out, text, (size_t)len + 1);
			free(text);
			return fits ? 0 : ERR_INVALID;
		}
		at += n;
		at += *at == '&';
	}
	return ERR_NOT_FOUND;
}

bool http_query_get(const struct http_request *r, const char *name, char *out, size_t out_bytes)
{
	return http_query_nth(r, name, 0, out, out_bytes) == 0;
}

const struct http_route *http_route_of(const struct http_request *r) { return r->route; }

const char *http_segment(const struct http_request *r, int i)
{
	return i >= 0 && i < r->captures.n ? r->captures.at[i] : NULL;
}

const char *http_header(const struct http_request *r, const char *name) { return http_head_get(r->head, name); }

const char *http_body(const struct http_request *r, size_t *ret_bytes)
{
	*ret_bytes = r->body.len;
	if (!r->body.data)
		return "";
	r->body.data[r->body.len] = '\0';
	return r->body.data;
}

char *http_detach_body(struct http_request *r, size_t *ret_bytes) { return http_body_detach(&r->body, ret_bytes); }

void http_recycle_body(char *body) { http_block_give(body); }

void http_pause_body(struct http_request *r) { r->is_paused = true; }

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

void http_set_user(struct http_request *r, void *user) { r->user = user; }

void *http_user(const struct http_request *r) { return r->user; }

void http_on_gone(struct http_request *r, void (*on_gone)(struct http_request *r)) { r->on_gone = on_gone; }

bool http_client_has_ended(const struct http_request *r) { return !r->conn || r->conn->is_eof; }
