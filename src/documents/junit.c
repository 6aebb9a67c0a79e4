/* Reads JUnit XML, which has no single specification: this follows pytest, GoogleTest, Surefire and node.
 * expat reads it as a stream. No entity is expanded, because a document with its own declarations is refused
 * before the first of them. */
#include <expat.h>

#include "documents/formats.h"

/* expat needs three times the length of an attribute while the attribute grows, and one attribute may fill a
 * document. */
enum { DEPTH_MAX = 64, SHOWN_MAX_BYTES = 80, XML_MAX_BYTES = 3 * REPORT_FILE_MAX_BYTES };

/* ---- bounded memory for expat ---- */

/* expat remembers each name of an element or attribute, so 32 MiB of different names would take half a
 * gigabyte. The count belongs to the thread, because expat does not pass a parser to its allocator: a thread
 * has one parser at a time. */
static _Thread_local size_t xml_bytes_left;

/* In front of each block; the size of the strictest alignment. */
union xml_block {
	size_t bytes;
	max_align_t align;
};

static void *xml_realloc(void *p, size_t bytes)
{
	union xml_block *old = p ? (union xml_block *)p - 1 : NULL, *block;
	size_t had = old ? old->bytes : 0;

	if (bytes > had && bytes - had > xml_bytes_left)
		return NULL;
	xml_bytes_left += had;
	xml_bytes_left -= bytes;
	block = xrealloc(old, sizeof(*block) + bytes);
	block->bytes = bytes;
	return block + 1;
}

static void *xml_malloc(size_t bytes) { return xml_realloc(NULL, bytes); }

static void xml_free(void *p)
{
	union xml_block *block = p ? (union xml_block *)p - 1 : NULL;

	if (block)
		xml_bytes_left += block->bytes;
	free(block);
}

/* ---- the document ---- */

struct suite {
	char *name; /* NULL: unnamed */
	int depth;
	uint32_t group;
};

struct junit {
	XML_Parser xml;
	struct case_list cases;
	struct suite suites[DEPTH_MAX]; /* the open ones; the root is the first */
	int n_suites;
	uint32_t n_groups;
	int depth;
	struct junit_case open;
	int case_depth;      /* of the open case; 0: none */
	int outcome_depth;   /* of the element in it whose text is kept; 0: none */
	int mute_depth;      /* of an element inside that one whose text is dropped; 0: none */
	json_t *environment; /* from the suites' properties; may be NULL */
	struct error why;
};

static void junit_refuse(struct junit *j, const char *what, const char *name)
{
	int shown = (int)utf8_cut(name, strlen(name), SHOWN_MAX_BYTES);

	error_set(&j->why, ERR_INVALID, "line %lu: %s%.*s", (unsigned long)XML_GetCurrentLineNumber(j->xml), what,
	    shown, name);
	XML_StopParser(j->xml, XML_FALSE);
}

static bool is_suite(const char *element) { return str_eq(element, "testsuite") || str_eq(element, "testsuites"); }

static void on_start_in_case(struct junit *j, const char *element, const char *const *attributes)
{
	enum junit_outcome outcome = junit_outcome_of(element);

	/* No tool does this, and assigning the outcomes would be a guess. */
	if (str_eq(element, "testcase") || is_suite(element)) {
		junit_refuse(j, "a testcase must not contain ", element);
		return;
	}
	if (j->depth == j->case_depth + 2 && str_eq(element, "property")) {
		junit_case_add_property(&j->open, attributes);
		return;
	}
	if (j->outcome_depth && !j->mute_depth && (str_eq(element, "system-out") || str_eq(element, "system-err")))
		j->mute_depth = j->depth;
	if (j->depth == j->case_depth + 1 && outcome != JUNIT_SILENT &&
	    junit_case_decide(&j->open, outcome, attributes))
		j->outcome_depth = j->depth;
}

static void on_start(void *owner, const XML_Char *element, const XML_Char **attributes)
{
	const char *const *list = (const char *const *)attributes;
	static const char *const suite_itself[] = {"name", "(suite)", NULL};
	struct junit *j = owner;
	enum junit_outcome outcome = junit_outcome_of(element);

	if (j->why.code)
		return;
	if (j->depth == DEPTH_MAX) {
		junit_refuse(j, "elements are nested deeper than 64", "");
		return;
	}
	j->depth++;
	if (j->depth == 1 && !is_suite(element)) {
		junit_refuse(j, "the root must be testsuites or testsuite, it is ", element);
	} else if (j->case_depth) {
		on_start_in_case(j, element, list);
	} else if (is_suite(element)) {
		struct suite *s = &j->suites[j->n_suites++];

		*s = (struct suite){.name = junit_name(list, "name"), .depth = j->depth, .group = ++j->n_groups};
		if (text_is_blank(s->name))
			FREE_AND_NULL(s->name);
	} else if (str_eq(element, "testcase")) {
		j->case_depth = j->depth;
		junit_case_open(&j->open, list);
	} else if (str_eq(element, "property")) {
		junit_environment_add(&j->environment, &j->cases.n_cut, list);
	} else if (outcome >= JUNIT_ERROR && j->suites[j->n_suites - 1].depth == j->depth - 1) {
		/* some tools report a failure of the whole suite (a hook, an import) outside of the cases */
		junit_case_open(&j->open, suite_itself);
		j->case_depth = j->depth;
		if (junit_case_decide(&j->open, outcome, list))
			j->outcome_depth = j->depth;
	}
}

static void on_end(void *owner, const XML_Char *element)
{
	struct junit *j = owner;
	const char *name = NULL;
	struct test_result t;
	bool is_alone, is_whole;

	(void)element;
	if (j->why.code)
		return;
	if (j->depth == j->mute_depth)
		j->mute_depth = 0;
	if (j->depth == j->outcome_depth)
		j->outcome_depth = 0;
	if (j->depth == j->case_depth) {
		for (int i = j->n_suites; i > 0 && !name; i--)
			name = j->suites[i - 1].name;
		/* node names every class "test", so equal names are mostly different tests. */
		is_alone = str_eq(j->open.class_name, "test");
		junit_case_close(&j->open, name, &t, &is_whole);
		case_list_add(&j->cases, &t, is_alone || !is_whole ? CASE_ALONE : j->suites[j->n_suites - 1].group);
		j->case_depth = 0;
	}
	if (j->n_suites > 0 && j->suites[j->n_suites - 1].depth == j->depth)
		free(j->suites[--j->n_suites].name);
	j->depth--;
}

static void on_text(void *owner, const XML_Char *s, int n)
{
	struct junit *j = owner;

	if (j->outcome_depth && !j->mute_depth && !j->why.code)
		junit_case_text(&j->open, s, (size_t)n);
}

static void on_doctype(
    void *owner, const XML_Char *name, const XML_Char *system_id, const XML_Char *public_id, int has_internal_subset)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	if (has_internal_subset)
		junit_refuse(owner, "declarations (<!DOCTYPE … [) are not read; remove them", "");
}

/* expat's error, with a hint for the common ones. */
static void explain_xml_error(struct junit *j)
{
	enum XML_Error code = XML_GetErrorCode(j->xml);
	unsigned long line = XML_GetCurrentLineNumber(j->xml);
	const char *hint = "";

	if (code == XML_ERROR_NO_MEMORY) {
		error_set(&j->why, ERR_INVALID,
		    "line %lu: more different names, or longer attributes, than a report has", line);
		return;
	}
	if (code == XML_ERROR_INVALID_TOKEN)
		hint = "; a control character, a bare '&' or '<', or bytes of another encoding than the one that is "
		       "named do this";
	else if (code == XML_ERROR_UNKNOWN_ENCODING || code == XML_ERROR_INCORRECT_ENCODING)
		hint = "; write the report as UTF-8";
	else if (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN)
		hint = "; was the file cut off?";
	error_set(&j->why, ERR_INVALID, "line %lu: not valid XML: %s%s", line, XML_ErrorString(code), hint);
}

int junit_parse(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	static const XML_Memory_Handling_Suite suite = {xml_malloc, xml_realloc, xml_free};
	struct junit j = {.n_suites = 0};

	/* Beyond these bytes the parser fails with XML_ERROR_NO_MEMORY. */
	xml_bytes_left = XML_MAX_BYTES;
	j.xml = XML_ParserCreate_MM(NULL, &suite, NULL);
	if (!j.xml)
		abort();
	XML_SetUserData(j.xml, &j);
	XML_SetElementHandler(j.xml, on_start, on_end);
	XML_SetCharacterDataHandler(j.xml, on_text);
	XML_SetStartDoctypeDeclHandler(j.xml, on_doctype);
	/* In one piece, because expat scans a token again for each piece of it. */
	if (XML_Parse(j.xml, text, (int)n, XML_TRUE) != XML_STATUS_OK && !j.why.code)
		explain_xml_error(&j);
	if (!j.why.code && j.environment)
		(void)!environment_text(j.environment, &ret->environment, &j.why);
	if (!j.why.code)
		case_list_finish(&j.cases, &ret->tests, &ret->n_tests, &ret->n_cut);
	else
		error_set(e, j.why.code, "%s", j.why.text);
	while (j.n_suites > 0)
		free(j.suites[--j.n_suites].name);
	junit_case_release(&j.open);
	case_list_release(&j.cases);
	json_decref(j.environment);
	XML_ParserFree(j.xml);
	return j.why.code;
}
