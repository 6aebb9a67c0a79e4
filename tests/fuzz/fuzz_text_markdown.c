/* Any bytes in every field that others write: the comment keeps its shape when GitHub's own Markdown reader reads it.
 * "\x1f" separates the pieces of the input. */

#include "../unit/hostile_view.h"
#include "../unit/markdown_oracle.h"
#include "../unit/rendering.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void set_field(struct change_view *v, int f, const char *piece, size_t n)
{
	bool is_url = f == FIELD_DOCS_URL || f == FIELD_HELP_URL || f == FIELD_JOB_URL || f == FIELD_KNOWN_URL;
	char **field = hostile_view_field(v, (enum field)f);
	char *text = xstrndup(piece, n);

	free(*field);
	*field = xasprintf("%s%s", is_url ? "https://vendor.example/" : "", text);
	free(text);
}

static void check(const struct comment *c)
{
	static const char *const allowed[] = {
	    "https://outpost.example.org/", "https://github.com/", "https://vendor.example/", NULL};
	struct oracle o;

	assert(c->bytes < COMMENT_MAX_BYTES && utf8_is_valid(c->markdown, c->bytes));
	oracle_read(c->markdown, allowed, &o);
	/* two tests of one name share a row */
	assert(o.n_tables == 1 && o.n_rows >= 2 && o.n_rows <= 10 && o.n_cells == 5 * o.n_rows);
	assert(!o.n_images && !o.n_html && !o.n_headings && !o.n_fences && !o.n_emphasis_in_text);
	assert(!o.n_foreign_links && !o.n_references);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct comment_options options = {.public_url = "https://outpost.example.org",
	    .github_url = "https://github.com",
	    .bot = "outpost-ci",
	    .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = hostile_view_new();
	const char *p = (const char *)data, *end = p + n;
	struct comment c;

	for (int f = 0; f < N_FIELDS && p < end; f++) {
		const char *stop = memchr(p, 0x1f, (size_t)(end - p));

		stop = stop ? stop : end;
		set_field(v, f, p, (size_t)(stop - p));
		p = stop + 1;
	}
	view_comment(v, &options, &c);
	check(&c);
	comment_release(&c);
	change_view_free(v);
	return 0;
}
