#include "model/triage_verdict.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "model/test_result.h"

enum {
	BLOCK_MAX_BYTES = 16 * 1024,
	SUMMARY_MAX_CHARS = 1000,
	REASON_MAX_CHARS = 300,
	EXCERPT_MAX_CHARS = 1000,
	SHORT_MAX_CHARS = 200,
	URL_MAX_CHARS = 500,
	EVIDENCE_MAX = 10,
};

/* Bytes of the first `max` characters; jansson's texts are valid UTF-8. */
static size_t cut_chars(const char *s, size_t max)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (((unsigned char)s[n] & 0xc0) != 0x80 && max-- == 0)
			break;
	return n;
}

/* from[key] as text of at most max_chars into to[key]. Absent or null is fine unless is_required; another
 * type, and a text with nothing to see in it, is false. */
static bool copy_text(
    const json_t *from, const char *key, size_t max_chars, bool is_required, json_t *to)
{
	const json_t *v = json_object_get(from, key);
	char *cut, *text;

	if (!v || json_is_null(v))
		return !is_required;
	if (!json_is_string(v))
		return false;
	cut = xstrndup(json_string_value(v), cut_chars(json_string_value(v), max_chars));
	text = report_lines(cut + strspn(cut, " \t\r\n"), strlen(cut));
	free(cut);
	if (!text)
		return false;
	json_object_set_new(to, key, json_string(text));
	free(text);
	return true;
}

static bool copy_word(const json_t *from, const char *key, const char *const *words, json_t *to)
{
	const char *text = json_get_str(from, key);

	for (; text && *words; words++)
		if (str_eq(text, *words)) {
			json_object_set_new(to, key, json_string(text));
			return true;
		}
	return false;
}

static bool is_commit(const char *s)
{
	size_t n = strlen(s);

	return n >= 7 && n <= 40 && strspn(s, "0123456789abcdefABCDEF") == n;
}

/* A suspicion has to name something that can be compared with the change under test. */
static bool copy_suspect(const json_t *from, json_t *to)
{
	const json_t *v = json_object_get(from, "suspected_upstream");
	const json_t *pr = json_object_get(v, "pr");
	json_t *suspect;

	if (!v || json_is_null(v))
		return true;
	if (!json_is_object(v) || !str_eq(json_get_str(to, "category"), "upstream"))
		return false;
	suspect = json_object();
	json_object_set_new(to, "suspected_upstream", suspect);
	if (pr && !json_is_null(pr)) {
		if (!json_is_integer(pr) || json_integer_value(pr) <= 0)
			return false;
		json_object_set_new(suspect, "pr", json_integer(json_integer_value(pr)));
	}
	if (!copy_text(v, "commit", SHORT_MAX_CHARS, false, suspect) ||
	    !copy_text(v, "reason", REASON_MAX_CHARS, false, suspect))
		return false;
	if (json_get_str(suspect, "commit"))
		return is_commit(json_get_str(suspect, "commit"));
	return json_object_get(suspect, "pr") != NULL;
}

/* A plain address: no user name before the host, nothing invisible in it. */
static bool is_plain_url(const char *s)
{
	size_t n_scheme = strncasecmp(s, "https://", 8) == 0  ? 8
			  : strncasecmp(s, "http://", 7) == 0 ? 7
							      : 0;
	size_t n_host = strcspn(s + n_scheme, "/?#");

	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	return n_scheme && n_host && !memchr(s + n_scheme, '@', n_host);
}

static bool copy_evidence(const json_t *from, json_t *to)
{
	const json_t *v = json_object_get(from, "evidence");
	json_t *list = json_array();

	if (!v || json_is_null(v)) {
		json_decref(list);
		return true;
	}
	json_object_set_new(to, "evidence", list);
	if (!json_is_array(v))
		return false;
	for (size_t i = 0; i < json_array_size(v) && i < EVIDENCE_MAX; i++) {
		const json_t *entry = json_array_get(v, i);
		json_t *one = json_object();

		json_array_append_new(list, one);
		if (!json_is_object(entry) ||
		    !copy_text(entry, "job", SHORT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "test", SHORT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "excerpt", EXCERPT_MAX_CHARS, false, one) ||
		    !copy_text(entry, "log_url", URL_MAX_CHARS, false, one))
			return false;
		if (json_get_str(one, "log_url") && !is_plain_url(json_get_str(one, "log_url")))
			return false;
	}
	return true;
}

static bool copy_analyzer(const json_t *from, json_t *to)
{
	static const char *const keys[] = {"name", "version", "model", "prompt_version"};
	const json_t *v = json_object_get(from, "analyzer");
	json_t *analyzer;

	if (!v || json_is_null(v))
		return true;
	if (!json_is_object(v))
		return false;
	analyzer = json_object();
	json_object_set_new(to, "analyzer", analyzer);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!copy_text(v, keys[i], SHORT_MAX_CHARS, false, analyzer))
			return false;
	return true;
}

/* ISO 8601 as CRCR reads it: a day alone, and a time without a zone, are times of UTC. */
static bool is_time(const char *s)
{
	static const char *const ends[] = {"", "Z", "T00:00:00Z"};
	int64_t ms;
	bool is = false;

	for (size_t i = 0; i < ARRAY_LEN(ends) && !is; i++) {
		char *text = xasprintf("%s%s", s, ends[i]);

		is = rfc3339_parse(text, &ms) == 0;
		free(text);
	}
	return is;
}

static bool copy_rest(const json_t *from, json_t *to)
{
	const json_t *again = json_object_get(from, "reproduced_on_retry");

	if (again && !json_is_null(again)) {
		if (!json_is_boolean(again))
			return false;
		json_object_set_new(to, "reproduced_on_retry", json_boolean(json_is_true(again)));
	}
	if (!copy_text(from, "analyzed_at", SHORT_MAX_CHARS, false, to))
		return false;
	return !json_get_str(to, "analyzed_at") || is_time(json_get_str(to, "analyzed_at"));
}

/* The number 1, also as text: a step of a workflow has texts only. */
static bool is_version_1(const json_t *v)
{
	return (json_is_integer(v) && json_integer_value(v) == 1) ||
	       str_eq(json_string_value(v), "1");
}

static bool is_too_large(const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT);
	bool is = !text || strlen(text) > BLOCK_MAX_BYTES;

	free(text);
	return is;
}

char *triage_verdict_parse(const json_t *v)
{
	static const char *const categories[] = {
	    "upstream", "backend", "infra", "flake", "unknown", NULL};
	static const char *const confidences[] = {"high", "medium", "low", NULL};
	json_t *to;
	char *text = NULL;

	if (!json_is_object(v) || is_too_large(v) ||
	    !is_version_1(json_object_get(v, "schema_version")))
		return NULL;
	to = json_object();
	if (copy_word(v, "category", categories, to) &&
	    copy_word(v, "confidence", confidences, to) &&
	    copy_text(v, "summary", SUMMARY_MAX_CHARS, true, to) && copy_suspect(v, to) &&
	    copy_evidence(v, to) && copy_analyzer(v, to) && copy_rest(v, to))
		text = json_dumps(to, JSON_COMPACT);
	json_decref(to);
	return text;
}
