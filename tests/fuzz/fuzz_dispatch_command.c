/* Any bytes as a comment: it is read in bounded time, and each command that is found is text that GitHub's own
 * renderer shows as the comment's own words, outside quotations and code. */
#include <cmark-gfm.h>

#include "dispatch/planning.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* HTML that GitHub shows as text: it removes the tags and keeps the text between them. */
static bool is_visible_html(const char *html)
{
	static const char *const hiding[] = {"<!", "<?", "<pre", "<script", "<style", "<textarea"};

	html += strspn(html, " ");
	for (size_t i = 0; i < ARRAY_LEN(hiding); i++)
		if (strncasecmp(html, hiding[i], strlen(hiding[i])) == 0)
			return false;
	return true;
}

/* Whether a node is the comment's own text. Of HTML only blocks matter: a span has no line
 * of its own. */
static bool is_own_text(cmark_node *node)
{
	cmark_node_type type = cmark_node_get_type(node);
	const char *text = cmark_node_get_literal(node);

	if (type != CMARK_NODE_TEXT && type != CMARK_NODE_HTML_BLOCK)
		return false;
	return strcasestr(text, "@bot") && (type == CMARK_NODE_TEXT || is_visible_html(text));
}

static bool is_aside(cmark_node_type type)
{
	return type == CMARK_NODE_BLOCK_QUOTE || type == CMARK_NODE_FOOTNOTE_DEFINITION;
}

/* How many $$ a node's text holds; those in code do not count. */
static int count_maths_marks(cmark_node *node)
{
	const char *text = cmark_node_get_literal(node);
	int n = 0;

	if (cmark_node_get_type(node) != CMARK_NODE_TEXT)
		return 0;
	for (; (text = strstr(text, "$$")); text += 2)
		n++;
	return n;
}

/* cmark does not know maths, so this applies GitHub's rule: the text between two $$ is a formula. n_marks: the number
 * in the whole document; NULL: not counted yet. Returns the number of $$. */
static int walk(cmark_node *document, const int *n_marks, bool *ret_is_shown)
{
	cmark_iter *it = cmark_iter_new(document);
	cmark_event_type event;
	int n_asides = 0, n_before = 0;

	while ((event = cmark_iter_next(it)) != CMARK_EVENT_DONE) {
		cmark_node *node = cmark_iter_get_node(it);

		if (is_aside(cmark_node_get_type(node)))
			n_asides += event == CMARK_EVENT_ENTER ? 1 : -1;
		if (event != CMARK_EVENT_ENTER)
			continue;
		if (n_marks && n_asides == 0 && is_own_text(node) && (n_before % 2 == 0 || n_before == *n_marks))
			*ret_is_shown = true;
		n_before += count_maths_marks(node);
	}
	cmark_iter_free(it);
	return n_before;
}

static bool is_shown(cmark_node *document)
{
	bool result = false;
	int n_marks = walk(document, NULL, NULL);

	walk(document, &n_marks, &result);
	return result;
}

static void check_command(const struct command *c)
{
	assert(c->kind < N_COMMAND_KINDS);
	assert(strlen(c->sha) <= 40 && strspn(c->sha, "0123456789abcdef") == strlen(c->sha));
	assert(c->kind == COMMAND_OK_TO_TEST || !c->sha[0]);
	assert(strlen(c->word) < COMMAND_WORD_BYTES && strlen(c->suite) < COMMAND_WORD_BYTES);
	assert(!c->suite[0] || (c->kind == COMMAND_RETEST && c->word[0]));
	assert(!c->word[0] || c->kind == COMMAND_RETEST || c->kind == COMMAND_STRESS || c->kind == COMMAND_UNKNOWN);
	assert(strlen(c->test) < COMMAND_TEST_BYTES);
	assert(!c->test[0] == (c->kind != COMMAND_STRESS));
	assert(c->n_rounds >= 0 && c->n_rounds < 1000000);
	assert(c->kind == COMMAND_STRESS || c->n_rounds == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xstrndup((const char *)data, n);
	struct command list[COMMANDS_MAX];
	size_t n_commands = commands_find(text, "bot", list);

	assert(n_commands <= COMMANDS_MAX);
	for (size_t i = 0; i < n_commands; i++)
		check_command(&list[i]);
	if (n_commands && utf8_is_valid(text, strlen(text))) { /* as JSON's are */
		cmark_node *document = cmark_parse_document(text, strlen(text), CMARK_OPT_FOOTNOTES);

		assert(is_shown(document));
		cmark_node_free(document);
	}
	n_commands = commands_find(text, NULL, list);
	for (size_t i = 0; i < n_commands; i++)
		check_command(&list[i]);
	free(text);
	return 0;
}
