/* What GitHub sent, or failed to send, to the App's webhook; asked as the App itself. */
#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

/* The value of `cursor` in a URL's query, still encoded; it goes back as it came. */
static void read_cursor(const char *url, char out[GITHUB_CURSOR_BYTES])
{
	const char *at = strchr(url, '?');

	out[0] = '\0';
	for (; at; at = strchr(at + 1, '&')) {
		size_t n;

		if (!str_has_prefix(at + 1, "cursor="))
			continue;
		at += strlen("?cursor=");
		n = strcspn(at, "&#");
		if (n >= GITHUB_CURSOR_BYTES)
			return;
		memcpy(out, at, n);
		out[n] = '\0';
		return;
	}
}

static bool on_deliveries(struct request *r)
{
	struct github_deliveries *d = CONTAINER_OF(r->call, struct github_deliveries, call);
	char next[2048];

	if (pages_next_url(r, next, sizeof(next)))
		read_cursor(next, d->next_cursor);
	return true;
}

void github_deliveries_get(struct github *g, struct github_deliveries *deliveries)
{
	const char *cursor = deliveries->cursor;

	deliveries->next_cursor[0] = '\0';
	if (cursor[strcspn(cursor, "&#? \r\n")]) {
		request_refuse(g, &deliveries->call, "deliveries: not a cursor");
		return;
	}
	request_start(g, &deliveries->call,
	    &(struct request_spec){
		.access = ACCESS_APP,
		.what = "listing webhook deliveries",
		.method = "GET",
		.path = xasprintf(
		    "/app/hook/deliveries?per_page=100%s%s", cursor[0] ? "&cursor=" : "", cursor),
		.answer = ANSWER_ARRAY,
		.on_answer = on_deliveries,
	    });
}

void github_delivery_redeliver(struct github *g, struct github_call *call, int64_t id)
{
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_APP,
		.what = "asking for a delivery again",
		.method = "POST",
		.path = xasprintf("/app/hook/deliveries/%lld/attempts", (long long)id),
	    });
}
