/* Reads Markdown as GitHub does (libcmark-gfm with GitHub's extensions) and returns what a page would show of it;
 * then applies GitHub's own rules to the text, which run after the Markdown reader. */
#pragma once

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

struct oracle {
	size_t n_tables, n_rows, n_cells; /* rows: with the heading */
	size_t n_links, n_images, n_html, n_headings, n_fences;
	size_t n_folds, n_fold_ends; /* our <details><summary>…</summary>, and their ends */
	size_t n_foreign_links;      /* targets that start with none of `allowed` */
	size_t n_references;         /* text that GitHub would turn into a mention, link or emoji */
	size_t n_emphasis_in_text;   /* emphasis and strikethrough; only the product writes strong text */
	char last[256];              /* the last finding, for messages */
};

static inline bool oracle_has_reference(const char *s)
{
	static const char hex[] = "0123456789abcdef";

	for (const char *p = s; *p; p++) {
		bool is_word_start =
		    p == s || (!strchr("_-", p[-1]) &&
				  !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", p[-1]));
		size_t n_hex = strspn(p, hex);

		if (*p == '@' || *p == '#' || !strncmp(p, "://", 3) || !strncasecmp(p, "www.", 4))
			return true;
		if (!strncasecmp(p, "GH-", 3) && p[3] >= '0' && p[3] <= '9')
			return true;
		if (is_word_start && n_hex >= 7 && (p[n_hex] == '\0' || strchr(" ,.;:)", p[n_hex])))
			return true;
		if (*p == ':' && p[1] && p[1] != ' ') {
			size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz0123456789_+-");

			if (n > 0 && p[1 + n] == ':')
				return true;
		}
	}
	return false;
}

/* "<details><summary>" and words of the product: nothing in them needs escaping, and no mark-up is read. */
static inline bool oracle_is_fold(const char *html)
{
	static const char open[] = "<details><summary>", close[] = "</summary>\n";
	static const char words[] = "abcdefghijklmnopqrstuvwxyzA0123456789,: ";
	size_t n;

	if (!str_has_prefix(html, open))
		return false;
	n = strspn(html + strlen(open), words);
	return n > 0 && str_eq(html + strlen(open) + n, close);
}

static inline void oracle_visit_html(struct oracle *o, const char *html)
{
	if (oracle_is_fold(html))
		o->n_folds++;
	else if (str_eq(html, "</details>\n"))
		o->n_fold_ends++;
	else if (!str_eq(html, "<!-- outpost:results -->\n"))
		o->n_html++, snprintf(o->last, sizeof(o->last), "html: %s", html);
	/* a fold in a fold, or an end without a beginning */
	o->n_html += o->n_folds < o->n_fold_ends || o->n_folds > o->n_fold_ends + 1;
}

static inline void oracle_visit(struct oracle *o, cmark_node *node, const char *const *allowed)
{
	const char *type = cmark_node_get_type_string(node);
	const char *literal = cmark_node_get_literal(node);

	if (str_eq(type, "table"))
		o->n_tables++;
	else if (str_eq(type, "table_row") || str_eq(type, "table_header"))
		o->n_rows++;
	else if (str_eq(type, "table_cell"))
		o->n_cells++;
	else if (str_eq(type, "image"))
		o->n_images++;
	else if (str_eq(type, "html_block") || str_eq(type, "html_inline"))
		oracle_visit_html(o, literal);
	else if (str_eq(type, "heading"))
		o->n_headings++;
	else if (str_eq(type, "code_block"))
		o->n_fences++;
	else if (str_eq(type, "emph") || str_eq(type, "strikethrough"))
		o->n_emphasis_in_text++;
	else if (str_eq(type, "text") && oracle_has_reference(literal))
		o->n_references++, snprintf(o->last, sizeof(o->last), "text: %s", literal);
	if (str_eq(type, "link")) {
		const char *url = cmark_node_get_url(node);
		bool is_ours = false;

		for (size_t i = 0; allowed[i]; i++)
			is_ours = is_ours || str_has_prefix(url, allowed[i]);
		o->n_links++;
		o->n_foreign_links += !is_ours;
		if (!is_ours)
			snprintf(o->last, sizeof(o->last), "link: %s", url);
	}
}

/* free() the tree with cmark_node_free(). */
static inline cmark_node *oracle_parse(const char *markdown)
{
	static const char *const extensions[] = {"table", "autolink", "strikethrough", "tagfilter", "tasklist"};
	cmark_parser *parser;
	cmark_node *doc;

	cmark_gfm_core_extensions_ensure_registered();
	parser = cmark_parser_new(CMARK_OPT_DEFAULT | CMARK_OPT_UNSAFE);
	for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
		cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(extensions[i]));
	cmark_parser_feed(parser, markdown, strlen(markdown));
	doc = cmark_parser_finish(parser);
	cmark_parser_free(parser);
	return doc;
}

/* allowed: prefixes of link targets, NULL-terminated. */
static inline void oracle_read(const char *markdown, const char *const *allowed, struct oracle *o)
{
	cmark_node *doc = oracle_parse(markdown);
	cmark_iter *iter;
	cmark_event_type event;

	memset(o, 0, sizeof(*o));
	cmark_consolidate_text_nodes(doc);
	iter = cmark_iter_new(doc);
	while ((event = cmark_iter_next(iter)) != CMARK_EVENT_DONE)
		if (event == CMARK_EVENT_ENTER)
			oracle_visit(o, cmark_iter_get_node(iter), allowed);
	o->n_html += o->n_folds != o->n_fold_ends;
	cmark_iter_free(iter);
	cmark_node_free(doc);
}

/* The literal of the n-th code span in the document, "" when there are fewer. free(). */
static inline char *oracle_code(const char *markdown, size_t n)
{
	cmark_node *doc = oracle_parse(markdown);
	cmark_iter *iter = cmark_iter_new(doc);
	cmark_event_type event;
	char *found = NULL;

	while (!found && (event = cmark_iter_next(iter)) != CMARK_EVENT_DONE) {
		cmark_node *node = cmark_iter_get_node(iter);

		if (event == CMARK_EVENT_ENTER && cmark_node_get_type(node) == CMARK_NODE_CODE && n-- == 0)
			found = xstrdup(cmark_node_get_literal(node));
	}
	cmark_iter_free(iter);
	cmark_node_free(doc);
	return found ? found : xstrdup("");
}
