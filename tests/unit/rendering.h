/* Renders the texts of a view, each from its own table. */
#pragma once

#include "text/check_output.h"
#include "text/comment.h"
#include "text/summary.h"
#include "text/terminal.h"

static inline void view_comment(const struct change_view *v, const struct comment_options *o, struct comment *ret)
{
	struct table t;

	table_init(&t, v);
	comment_render(&t, o, ret);
	table_release(&t);
}

static inline bool view_has_news(const struct change_view *v)
{
	struct table t;
	bool has_news;

	table_init(&t, v);
	has_news = comment_has_news(&t);
	table_release(&t);
	return has_news;
}

static inline bool view_has_red(const struct change_view *v)
{
	struct table t;
	bool has_red;

	table_init(&t, v);
	has_red = comment_has_red(&t);
	table_release(&t);
	return has_red;
}

static inline bool view_is_complete(const struct change_view *v)
{
	struct table t;
	bool is_complete;

	table_init(&t, v);
	is_complete = table_is_complete(&t);
	table_release(&t);
	return is_complete;
}

static inline json_t *view_verdict(const struct change_view *v)
{
	struct table t;
	json_t *verdict;

	table_init(&t, v);
	verdict = verdict_json(&t);
	table_release(&t);
	return verdict;
}

static inline void view_terminal(const struct change_view *v, const struct terminal_options *o, struct buf *out)
{
	struct table t;

	table_init(&t, v);
	terminal_render(&t, o, out);
	table_release(&t);
}
