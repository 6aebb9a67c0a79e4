/* What the comment would say now, for people at a terminal. */
#include "base/alloc.h"
#include "base/clock.h"
#include "publish/publish_internal.h"
#include "report/terminal.h"

enum { TERMINAL_MAX_BYTES = 4 * 1024 * 1024 };

struct preview_read {
	struct publisher *p;
	struct config *config;
	struct preview *preview;
	struct get_change change;
};

static char *markdown_of(const struct preview_read *r)
{
	struct comment_options options;
	struct comment text;
	char *github_url;

	publisher_comment_options(r->p, r->config, &options, &github_url);
	comment_render(r->change.view, &options, &text);
	free(github_url);
	return text.markdown;
}

static char *terminal_of(const struct preview_read *r)
{
	struct buf out = BUF_INIT(TERMINAL_MAX_BYTES);

	terminal_render(r->change.view,
	    &(struct terminal_options){.has_colour = r->preview->format == PREVIEW_TERMINAL_COLOUR,
		.width = r->preview->width,
		.public_url = r->config->public_url,
		.now_wall_ms = clock_wall_ms()},
	    &out);
	return buf_take(&out);
}

static void on_change(struct store_query *q)
{
	struct preview_read *r = CONTAINER_OF(q, struct preview_read, change.q);
	struct publisher *p = r->p;
	struct preview *preview = r->preview;

	preview->err = q->err;
	if (!q->err)
		preview->text =
		    preview->format == PREVIEW_MARKDOWN ? markdown_of(r) : terminal_of(r);
	change_view_free(r->change.view);
	config_unref(r->config);
	free(r);
	p->n_previews--;
	if (p->is_closing)
		publisher_pump(p);
	preview->done(preview);
}

int publish_preview(struct publisher *p, struct preview *preview)
{
	struct preview_read *r;
	int rc;

	preview->err = 0;
	preview->text = NULL;
	if (p->is_closing)
		return ERR_CLOSING;
	r = xcalloc(1, sizeof(*r));
	r->p = p;
	r->preview = preview;
	r->config = config_ref(p->config);
	r->change = (struct get_change){.q = {.done = on_change},
	    .repository = r->config->upstream_repository,
	    .number = preview->number,
	    .max_verdicts = VERDICTS_MAX};
	rc = store_get_change(p->deps.store, &r->change);
	if (rc) {
		config_unref(r->config);
		free(r);
		return rc;
	}
	p->n_previews++;
	return 0;
}
