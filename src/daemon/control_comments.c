/* outpostctl comment preview: the comment as it would be now. */
#include "base/alloc.h"
#include "base/str.h"
#include "daemon/control_internal.h"

static void previewed(struct preview *pv)
{
	struct control_request *q = CONTAINER_OF(pv, struct control_request, preview);

	if (pv->err == ERR_NOT_FOUND)
		control_respond_error(q->request, pv->err, "no such pull request is known");
	else if (pv->err)
		control_respond_error(q->request, pv->err, NULL);
	else
		control_respond(q->request, 200, json_pack("{s:s}", "text", pv->text));
	free(pv->text);
	control_end(q);
}

static enum preview_format format_of(const struct http_request *r)
{
	char text[16] = "";

	if (!http_query_get(r, "format", text, sizeof(text)))
		return PREVIEW_MARKDOWN;
	if (str_eq(text, "colour"))
		return PREVIEW_TERMINAL_COLOUR;
	return str_eq(text, "terminal") ? PREVIEW_TERMINAL : PREVIEW_MARKDOWN;
}

void control_on_preview(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q;
	char width[16] = "";
	int64_t number, columns = 0;
	int rc;

	if (parse_int64(http_segment(r, 0), &number) || number < 1) {
		control_respond_error(r, ERR_INVALID, "the pull request must be a number");
		return;
	}
	q = control_begin(r, c);
	if (http_query_get(r, "width", width, sizeof(width)) && !parse_int64(width, &columns) &&
	    columns >= 40 && columns <= 1000)
		q->preview.width = (int)columns;
	q->preview.number = number;
	q->preview.format = format_of(r);
	q->preview.done = previewed;
	rc = publish_preview(c->daemon->publish, &q->preview);
	if (rc) {
		control_respond_error(r, rc, NULL);
		control_end(q);
	}
}
