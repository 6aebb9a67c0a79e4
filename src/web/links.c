/* What the links in comments open: /pulls/{n}, /commits/{sha}, /jobs/{id}. The same thing as
 * JSON is all there is to show, so they lead there. */
#include "base/alloc.h"
#include "web/web_internal.h"

enum { LOCATION_MAX_BYTES = 256 };

static void on_link(struct http_request *r, void *owner)
{
	char location[LOCATION_MAX_BYTES];
	const struct http_header_line headers[] = {{"Location", location}, {NULL, NULL}};
	const char *id = http_segment(r, 0);
	size_t n = strlen(id);

	/* The segment goes into a header: only what an id can be made of. */
	if (n > 40 || strspn(id, "0123456789abcdef") != n) {
		web_respond_not_found(r, "no such page");
		return;
	}
	snprintf(location, sizeof(location), "/api/v1/%s/%s", (const char *)owner, id);
	http_respond(r, 303, "text/plain", headers, "", 0);
}

void web_add_link_routes(struct web *w)
{
	static char kinds[][8] = {"pulls", "commits", "jobs"};
	static const char *const patterns[] = {"/pulls/{n}", "/commits/{sha}", "/jobs/{id}"};

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		http_server_route(w->deps.server, &(struct http_route){.method = "GET",
						      .pattern = patterns[i],
						      .on_request = on_link,
						      .owner = kinds[i]});
}
