/* What differs from the base: a test that is gone or is skipped all of a sudden hides failures,
 * and no cell of the table shows it. Counted in one line, named in the fold. */
#include <string.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "report/comment_internal.h"
#include "report/count.h"

enum { DELTAS_MAX_BYTES = 4 * 1024, DELTA_NAME_MAX_CHARS = 80 };

/* Things got better, and nothing else is to be said. */
static bool is_only_fixed(const struct base_delta *d)
{
	return d->n_newly_failing + d->n_disappeared + d->n_newly_skipped == 0;
}

static bool is_worth_telling(const struct table *t, const struct table_column *c)
{
	const struct base_delta *d = &c->accelerator->delta;

	if (!d->base_sha || (is_only_fixed(d) && d->n_fixed == 0))
		return false;
	return t->n_failures > 0 || !is_only_fixed(d);
}

static void append_part(
    struct buf *out, const char *what, size_t n, const char **separator, char **names)
{
	if (n == 0)
		return;
	buf_append_str(out, *separator);
	count_append(out, n);
	buf_appendf(out, " %s", what);
	*separator = ", ";
	for (size_t i = 0; names && names[i] && i < DELTA_NAMES_MAX; i++) {
		buf_append_str(out, i ? ", " : ": ");
		escape_markdown_code(out, names[i], DELTA_NAME_MAX_CHARS, MARKDOWN_TEXT);
		*separator = "; ";
	}
	if (names && names[0] && n > DELTA_NAMES_MAX)
		buf_append_str(out, ", …");
}

static void append_parts(struct buf *out, const struct base_delta *d)
{
	const char *separator = "";

	append_part(out, "newly failing", d->n_newly_failing, &separator, NULL);
	append_part(out, "fixed", d->n_fixed, &separator, d->fixed);
	append_part(out, "disappeared", d->n_disappeared, &separator, d->disappeared);
	append_part(out, "newly skipped", d->n_newly_skipped, &separator, d->newly_skipped);
}

static void append_column(struct buf *out, const struct table *t, const struct table_column *c,
    const struct comment_options *o)
{
	const struct base_delta *d = &c->accelerator->delta;

	buf_append_str(out, "- ");
	comment_append_title(out, c->accelerator->title);
	buf_append_str(out, " against ");
	comment_append_commit(out, t->view, o, d->base_sha);
	if (d->distance > 0)
		buf_appendf(out, ", %d commit%s before the merge base", d->distance,
		    d->distance == 1 ? "" : "s");
	buf_append_str(out, ": ");
	append_parts(out, d);
	buf_append_char(out, '\n');
}

void comment_append_deltas(struct buf *out, const struct table *t, const struct comment_options *o)
{
	struct buf lines = BUF_INIT(COMMENT_MAX_BYTES), line = BUF_INIT(COMMENT_MAX_BYTES);
	struct base_delta sum = {.base_sha = NULL};
	size_t n_unnamed = 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct base_delta *d = &t->columns[i].accelerator->delta;

		if (!is_worth_telling(t, &t->columns[i]))
			continue;
		sum.n_newly_failing += d->n_newly_failing;
		sum.n_fixed += d->n_fixed;
		sum.n_disappeared += d->n_disappeared;
		sum.n_newly_skipped += d->n_newly_skipped;
		buf_clear(&line);
		append_column(&line, t, &t->columns[i], o);
		if (lines.len + line.len > DELTAS_MAX_BYTES)
			n_unnamed++;
		else
			buf_append(&lines, line.data, line.len);
	}
	if (n_unnamed)
		buf_appendf(&lines, "- … and %zu more accelerators\n", n_unnamed);
	if (lines.len) {
		buf_append_str(out, "<details><summary>Against the base: ");
		append_parts(out, &sum);
		buf_append_str(out, "</summary>\n\n");
		buf_append(out, lines.data, lines.len);
		buf_append_str(out, "\n</details>\n\n");
	}
	buf_release(&lines);
	buf_release(&line);
}
