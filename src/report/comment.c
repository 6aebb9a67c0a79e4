/* Puts the comment together. The table comes last, into the room that the other parts leave,
 * because it is the only part that may be cut; what changes by mere passing of time is kept
 * aside as spans, so that the hash can leave it out. */
#include "report/comment.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"
#include "report/comment_internal.h"
#include "report/summary.h"

enum { SPAN_ROOM_BYTES = 48 };

struct span {
	size_t offset, bytes;
};

void comment_append_title(struct buf *out, const char *title)
{
	escape_markdown_label(out, title ? title : "", TITLE_MAX_CHARS, MARKDOWN_TEXT);
}

bool comment_append_own_url(
    struct buf *out, const struct comment_options *o, const char *folder, int64_t id)
{
	if (!escape_url(out, o->public_url, OWN_URL_MAX_BYTES, URL_HTTPS_OR_HTTP))
		return false;
	buf_appendf(out, "/%s/%lld", folder, (long long)id);
	return true;
}

void comment_append_commit(
    struct buf *out, const struct change_view *v, const struct comment_options *o, const char *sha)
{
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);

	if (!is_sha1(sha)) {
		escape_markdown_code(out, sha, SHA_SHORT_CHARS, MARKDOWN_TEXT);
	} else if (is_repository_name(v->repository) &&
		   escape_url(&url, o->github_url, OWN_URL_MAX_BYTES, URL_HTTPS_OR_HTTP)) {
		buf_appendf(out, "[`%.*s`](%s/%s/commit/%s)", SHA_SHORT_CHARS, sha, buf_str(&url),
		    v->repository, sha);
	} else {
		buf_appendf(out, "`%.*s`", SHA_SHORT_CHARS, sha);
	}
	buf_release(&url);
}

static void append_age(struct buf *out, int64_t age_ms)
{
	long long hours = age_ms / (INT64_C(3600) * 1000), days = hours / 24;

	if (days >= 2)
		buf_appendf(out, ", %lld days old", days);
	else if (hours >= 2)
		buf_appendf(out, ", %lld hours old", hours);
	else
		buf_append_str(out, ", under 2 hours old");
}

/* Marker, verdict line, and what was tested. */
static void append_head(
    struct buf *out, const struct table *t, const struct comment_options *o, struct span *ret_age)
{
	static const struct summary_style style = {
	    .bold_on = "**", .bold_off = "**", .append_title = comment_append_title};
	const struct change_view *v = t->view;

	buf_append_str(out, COMMENT_MARKER "\n");
	summary_append(t, &style, out);
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
	if (v->merge_base_sha && v->merge_base_ms > 0 && o->now_wall_ms >= v->merge_base_ms)
		append_age(out, o->now_wall_ms - v->merge_base_ms);
	ret_age->bytes = out->len - ret_age->offset;
	if (v->state == CHANGE_CLOSED)
		buf_append_str(out, " · the pull request is closed");
	buf_append_str(out, "\n\n");
}

/* "2026-11-20 12:00 UTC" */
static void append_time(struct buf *out, int64_t wall_ms)
{
	char text[RFC3339_BYTES];

	rfc3339_format(wall_ms, text);
	buf_appendf(out, "%.10s %.5s UTC", text, text + 11);
}

static void append_how_to_retest(
    struct buf *out, const struct table *t, const struct comment_options *o)
{
	bool has_run = t->n_rows > 0 || t->n_outcomes[OUTCOME_MISSING] > 0;

	if (t->view->state != CHANGE_OPEN || !has_run)
		return;
	buf_append_str(out, "Test again: ");
	if (o->bot)
		comment_append_command(out, o, "retest");
	else
		buf_append_str(out, "close and reopen the pull request");
	buf_append_str(out, " · ");
}

static void append_footer(
    struct buf *out, const struct table *t, const struct comment_options *o, struct span *ret_time)
{
	const struct change_view *v = t->view;
	struct buf url = BUF_INIT(COMMENT_MAX_BYTES);

	buf_append_str(out, "---\n");
	if (v->state != CHANGE_SUPERSEDED)
		comment_append_legend(out, t);
	append_how_to_retest(out, t, o);
	if (v->number > 0 && comment_append_own_url(&url, o, "pulls", v->number))
		buf_appendf(out, "[all results](%s) · ", buf_str(&url));
	buf_append_str(out, "updated ");
	ret_time->offset = out->len;
	append_time(out, o->now_wall_ms);
	ret_time->bytes = out->len - ret_time->offset;
	buf_append_char(out, '\n');
	buf_release(&url);
}

/* Of everything but the two spans; `late` lies behind `early`. */
static void hash_without(const struct buf *text, const struct span *early, const struct span *late,
    uint8_t out[SHA256_BYTES])
{
	struct buf rest = BUF_INIT(COMMENT_MAX_BYTES);
	size_t behind_early = early->offset + early->bytes;
	size_t behind_late = late->offset + late->bytes;

	buf_append(&rest, text->data, early->offset);
	buf_append(&rest, text->data + behind_early, late->offset - behind_early);
	buf_append(&rest, text->data + behind_late, text->len - behind_late);
	sha256(buf_str(&rest), rest.len, out);
	buf_release(&rest);
}

/* All between the head and the footer; the table takes the room that the others leave. */
static void append_body(struct buf *out, const struct table *t, const struct comment_options *o,
    size_t max_bytes, size_t *ret_n_left_out)
{
	struct buf tail = BUF_INIT(COMMENT_MAX_BYTES - 1);

	comment_append_failures(&tail, t, o);
	comment_append_states(&tail, t, o);
	comment_append_folded_failures(&tail, t, o);
	comment_append_deltas(&tail, t, o);
	comment_append_table(
	    out, t, o, max_bytes > tail.len ? max_bytes - tail.len : 0, ret_n_left_out);
	buf_append(out, tail.data, tail.len);
	buf_release(&tail);
}

void comment_render(
    const struct change_view *v, const struct comment_options *o, struct comment *ret)
{
	struct buf text = BUF_INIT(COMMENT_MAX_BYTES - 1);
	struct buf footer = BUF_INIT(COMMENT_MAX_BYTES - 1);
	struct span age, time;
	struct table t;
	size_t n_spoken_for;

	table_init(&t, v);
	ret->n_rows_left_out = 0;
	append_head(&text, &t, o, &age);
	append_footer(&footer, &t, o, &time);
	/* the spans count as much as they ever take, so that time does not move the cut */
	n_spoken_for = text.len + footer.len - age.bytes - time.bytes + 2 * SPAN_ROOM_BYTES;
	if (v->state != CHANGE_SUPERSEDED)
		append_body(&text, &t, o, text.max - n_spoken_for, &ret->n_rows_left_out);
	time.offset += text.len;
	buf_append(&text, footer.data, footer.len);
	hash_without(&text, &age, &time, ret->hash);
	ret->bytes = text.len;
	ret->markdown = buf_take(&text);
	buf_release(&footer);
	table_release(&t);
}

void comment_release(struct comment *c)
{
	FREE_AND_NULL(c->markdown);
}

/* ---- what the writer asks before it writes ---- */

bool comment_has_news(const struct change_view *v)
{
	struct table t;
	bool has_news = false;

	table_init(&t, v);
	has_news = t.n_rows > 0;
	for (size_t i = 0; i < t.n_columns; i++)
		has_news = has_news || table_is_releasable(&t.columns[i]) || t.columns[i].silent ||
			   table_declined_why(&t.columns[i]) || t.columns[i].accelerator->n_jobs;
	table_release(&t);
	return has_news;
}

bool comment_has_red(const struct change_view *v)
{
	struct table t;
	bool has_red;

	table_init(&t, v);
	has_red =
	    t.n_failures > t.n_failures_in[FAILURE_NOT_COUNTED] || t.n_outcomes[OUTCOME_MISSING];
	table_release(&t);
	return has_red;
}

bool comment_is_complete(const struct change_view *v)
{
	struct table t;
	bool is_complete;

	table_init(&t, v);
	is_complete = table_is_complete(&t);
	table_release(&t);
	return is_complete;
}
