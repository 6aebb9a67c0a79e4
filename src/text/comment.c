/* Puts the comment together. The table gets the space that the other parts leave, because it is the only part that may
 * be cut. The hash leaves out the spans of text that change only because time passes. */
#include "text/comment.h"

#include "text/comment_internal.h"
#include "text/summary.h"

enum { SPAN_ROOM_BYTES = 48, STATUS_LINES_MAX = 60 };

struct span {
	size_t offset, bytes;
};

void comment_append_title(struct buf *out, const char *title)
{
	escape_markdown_label(out, title ? title : "", TITLE_MAX_CHARS, MARKDOWN_TEXT);
}

void comment_append_commit(
    struct buf *out, const struct change_view *v, const struct comment_options *o, const char *sha)
{
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);

	if (!is_sha1(sha)) {
		escape_markdown_code(out, sha, SHA_SHORT_CHARS, MARKDOWN_TEXT);
	} else if (is_repository_name(v->repository) &&
		   escape_url(&url, o->github_url, GITHUB_URL_MAX_BYTES, URL_HTTPS_OR_HTTP)) {
		buf_appendf(out, "[`%.*s`](%s/%s/commit/%s)", SHA_SHORT_CHARS, sha, buf_str(&url), v->repository, sha);
	} else {
		buf_appendf(out, "`%.*s`", SHA_SHORT_CHARS, sha);
	}
	buf_release(&url);
}

static const struct summary_style COMMENT_STYLE = {
    .bold_on = "**", .bold_off = "**", .append_title = comment_append_title};

/* The marker, the verdict and the tested commit. */
static void append_head(struct buf *out, const struct table *t, const struct comment_options *o, struct span *ret_age)
{
	const struct change_view *v = t->view;

	buf_append_str(out, COMMENT_MARKER "\n");
	summary_append(t, &COMMENT_STYLE, out);
	buf_append_str(out, "\n\nTested commit: ");
	comment_append_commit(out, v, o, v->head_sha ? v->head_sha : "");
	if (v->merge_base_sha) {
		buf_append_str(out, " · merge base ");
		comment_append_commit(out, v, o, v->merge_base_sha);
	}
	if (v->merge_base_sha && v->base_ref) {
		buf_append_str(out, " on ");
		escape_markdown_code(out, v->base_ref, TITLE_MAX_CHARS, MARKDOWN_TEXT);
	}
	ret_age->offset = out->len;
	if (v->merge_base_sha && v->merge_base_ms > 0 && o->now_wall_ms >= v->merge_base_ms) {
		long long hours = (o->now_wall_ms - v->merge_base_ms) / (INT64_C(3600) * 1000), days = hours / 24;

		if (days >= 2)
			buf_appendf(out, ", %lld days old", days);
		else if (hours >= 2)
			buf_appendf(out, ", %lld hours old", hours);
		else
			buf_append_str(out, ", under 2 hours old");
	}
	ret_age->bytes = out->len - ret_age->offset;
	if (v->state == CHANGE_CLOSED)
		buf_append_str(out, " · the pull request is closed");
	buf_append_str(out, "\n\n");
}

void comment_render(const struct table *t, const struct comment_options *o, struct comment *ret)
{
	struct buf text = BUF_INIT(COMMENT_MAX_BYTES - 1), tail = BUF_INIT(COMMENT_MAX_BYTES - 1);
	struct buf footer = BUF_INIT(COMMENT_MAX_BYTES - 1);
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);
	const struct change_view *v = t->view;
	struct span age, time;
	char now[RFC3339_BYTES];

	ret->n_rows_left_out = 0;
	append_head(&text, t, o, &age);
	buf_append_str(&footer, "---\n");
	if (v->state != CHANGE_SUPERSEDED)
		comment_append_legend(&footer, t);
	if (v->state == CHANGE_OPEN && (t->n_rows > 0 || t->n_outcomes[OUTCOME_MISSING] > 0)) {
		buf_append_str(&footer, "Test again: ");
		if (o->bot)
			comment_append_command(&footer, o, "retest");
		else
			buf_append_str(&footer, "close and reopen the pull request");
		buf_append_str(&footer, " · ");
	}
	if (own_url_append(&url, o->public_url, "pulls", v->number))
		buf_appendf(&footer, "[all results](%s) · ", buf_str(&url));
	buf_append_str(&footer, "updated ");
	time.offset = footer.len;
	rfc3339_format(o->now_wall_ms, now);
	buf_appendf(&footer, "%.10s %.5s UTC", now, now + 11); /* 2026-11-20 12:00 UTC */
	time.bytes = footer.len - time.offset;
	buf_append_char(&footer, '\n');
	buf_release(&url);
	if (v->state != CHANGE_SUPERSEDED) {
		comment_append_failures(&tail, t, o);
		comment_append_states(&tail, t, o);
		comment_append_folded_failures(&tail, t, o);
		comment_append_deltas(&tail, t, o);
		/* each span counts as its largest size, so that the passing of time does not move the cut */
		size_t room = text.max - (text.len + footer.len - age.bytes - time.bytes + 2 * SPAN_ROOM_BYTES);
		comment_append_table(&text, t, o, room > tail.len ? room - tail.len : 0, &ret->n_rows_left_out);
		buf_append(&text, tail.data, tail.len);
	}
	time.offset += text.len;
	buf_append(&text, footer.data, footer.len);
	/* the hash of everything except the two spans */
	struct buf rest = BUF_INIT(COMMENT_MAX_BYTES);
	size_t behind_age = age.offset + age.bytes, behind_time = time.offset + time.bytes;

	buf_append(&rest, text.data, age.offset);
	buf_append(&rest, text.data + behind_age, time.offset - behind_age);
	buf_append(&rest, text.data + behind_time, text.len - behind_time);
	sha256(buf_str(&rest), rest.len, ret->hash);
	buf_release(&rest);
	ret->bytes = text.len;
	ret->markdown = buf_detach(&text);
	buf_release(&tail);
	buf_release(&footer);
}

void comment_release(struct comment *c) { FREE_AND_NULL(c->markdown); }

bool comment_has_news(const struct table *t)
{
	bool has_news = t->n_rows > 0;

	for (size_t i = 0; i < t->n_columns; i++)
		has_news = has_news || table_is_releasable(&t->columns[i]) || t->columns[i].silent ||
			   table_declined_why(&t->columns[i]) || t->columns[i].accelerator->n_jobs;
	return has_news;
}

bool comment_has_red(const struct table *t)
{
	return t->n_failures > t->n_failures_in[FAILURE_NOT_COUNTED] || t->n_outcomes[OUTCOME_MISSING];
}

/* ---- the answer to `@BOT status` ---- */

static const char *state_word(const struct table_column *c)
{
	static const char *const words[] = {[COLUMN_RUNNING] = "at work",
	    [COLUMN_SILENT] = "no report",
	    [COLUMN_HELD] = "held",
	    [COLUMN_FINISHED] = "finished",
	    [COLUMN_CANCELLED] = "cancelled"};

	return c->state == COLUMN_RUNNING && c->is_waiting ? "waits for a machine" : words[c->state];
}

static const char *state_reason(const struct table_column *c)
{
	switch (c->state) {
	case COLUMN_HELD:
		return c->held ? c->held->held_reason : NULL;
	case COLUMN_SILENT:
		return c->silent ? c->silent->last_error : NULL;
	case COLUMN_CANCELLED:
		return c->dispatch ? c->dispatch->last_error : NULL;
	case COLUMN_RUNNING:
	case COLUMN_FINISHED:
		break;
	}
	return NULL;
}

/* "- Ascend NPU: finished, 12 passed, 1 failed" */
static void append_status_line(struct buf *out, const struct table_column *c)
{
	static const struct {
		enum test_status status;
		const char *word;
	} counts[] = {{TEST_PASS, "passed"}, {TEST_FAIL, "failed"}, {TEST_ERROR, "broken tests"},
	    {TEST_MISS, "without a result"}, {TEST_SKIP, "skipped"}};
	const char *why = state_reason(c);

	buf_append_str(out, "- ");
	comment_append_title(out, c->accelerator->title);
	buf_appendf(out, ": %s", state_word(c));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (c->n_cells[counts[i].status])
			buf_appendf(out, ", %zu %s", c->n_cells[counts[i].status], counts[i].word);
	if (c->n_rerunning)
		buf_appendf(out, ", re-running %zu", c->n_rerunning);
	if (why) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, why, REASON_MAX_CHARS, MARKDOWN_TEXT);
	}
	buf_append_char(out, '\n');
}

void comment_render_status(const struct table *t, const struct comment_options *o, struct buf *out)
{
	const struct change_view *v = t->view;
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);

	summary_append(t, &COMMENT_STYLE, out);
	buf_append_str(out, "\n\nTested commit: ");
	comment_append_commit(out, v, o, v->head_sha ? v->head_sha : "");
	buf_append_str(out, "\n\n");
	for (size_t i = 0; i < t->n_columns && i < STATUS_LINES_MAX; i++)
		append_status_line(out, &t->columns[i]);
	if (t->n_columns > STATUS_LINES_MAX)
		buf_appendf(out, "- and %zu more\n", t->n_columns - STATUS_LINES_MAX);
	if (own_url_append(&url, o->public_url, "pulls", v->number))
		buf_appendf(out, "\n[All results](%s)\n", buf_str(&url));
	buf_release(&url);
}
