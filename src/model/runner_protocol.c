/* One table of texts per message drives reading and writing, so that a field can only be
 * written as it is read. What a program made is refused when it is wrong; what people wrote (a
 * title) is put right, because no change may keep a machine from taking it. */
#include "model/runner_protocol.h"

#include <ctype.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"

enum {
	ID_MAX_BYTES = 64,
	NAME_MAX_BYTES = 256,
	TITLE_MAX_BYTES = 1024,
	URL_MAX_BYTES = 2048,
	ATTEMPT_MAX = 1000000,
	LEASE_MAX_MS = 24 * 3600 * 1000,
};

enum text_rule {
	RULE_ID,         /* letters, digits, '-': stands in paths of requests */
	RULE_NAME,       /* those and '.', '_' */
	RULE_LINE,       /* printable, one line */
	RULE_REPOSITORY, /* owner/name */
	RULE_SHA,
	RULE_PROSE, /* people's text: cut to size, control characters become spaces */
};
enum presence { OPTIONAL, REQUIRED };

struct text_field {
	const char *key; /* NULL ends the table */
	size_t offset;   /* of a char * */
	enum text_rule rule;
	enum presence presence;
	size_t max_bytes;
};

/* ---- texts ---- */

static bool is_word(const char *s, const char *also)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(also, *s))
			return false;
	return true;
}

/* jansson gives valid UTF-8 only, so the C1 controls are two bytes. */
static bool is_line(const char *s)
{
	for (const unsigned char *c = (const unsigned char *)s; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			return false;
	return true;
}

/* As is_line() wants it; NULL when nothing is left. */
static char *clean_prose(const char *s, size_t max_bytes)
{
	char *out = xstrndup(s, utf8_cut(s, strlen(s), max_bytes));

	for (unsigned char *c = (unsigned char *)out; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = ' ';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = ' ';
	if (!*out)
		FREE_AND_NULL(out);
	return out;
}

/* NULL when it is right, else what it must be. */
static const char *text_must_be(enum text_rule rule, const char *s)
{
	switch (rule) {
	case RULE_ID:
		return is_word(s, "-") ? NULL : "letters, digits and -";
	case RULE_NAME:
		return is_word(s, "-._") ? NULL : "letters, digits, -, . and _";
	case RULE_REPOSITORY:
		return is_repository_name(s) ? NULL : "owner/name";
	case RULE_SHA:
		return is_sha1(s) ? NULL : "40 lower-case hexadecimal digits";
	case RULE_LINE:
	case RULE_PROSE:
	default:
		return is_line(s) ? NULL : "one line without control characters";
	}
}

static int check_text(const struct text_field *f, const char *s, struct error *e)
{
	size_t n = strlen(s);
	const char *what;

	if (n == 0 || n > f->max_bytes)
		return error_set(
		    e, ERR_INVALID, "%s must be 1 to %zu bytes, not %zu", f->key, f->max_bytes, n);
	what = text_must_be(f->rule, s);
	return what ? error_set(e, ERR_INVALID, "%s must be %s", f->key, what) : 0;
}

static int read_text(const json_t *obj, const struct text_field *f, void *base, struct error *e)
{
	const json_t *v = json_object_get(obj, f->key);
	char **target = (char **)(void *)((char *)base + f->offset);
	int rc;

	if (!v || json_is_null(v))
		return f->presence == OPTIONAL ? 0
					       : error_set(e, ERR_INVALID, "%s is missing", f->key);
	if (!json_is_string(v))
		return error_set(e, ERR_INVALID, "%s must be text", f->key);
	if (f->rule == RULE_PROSE) {
		*target = clean_prose(json_string_value(v), f->max_bytes);
		return 0;
	}
	rc = check_text(f, json_string_value(v), e);
	if (!rc)
		*target = xstrdup(json_string_value(v));
	return rc;
}

static int read_texts(
    const json_t *obj, const struct text_field *table, void *base, struct error *e)
{
	int rc = 0;

	for (const struct text_field *f = table; f->key && !rc; f++)
		rc = read_text(obj, f, base, e);
	return rc;
}

static void write_texts(json_t *obj, const struct text_field *table, const void *base)
{
	for (const struct text_field *f = table; f->key; f++)
		json_set_str(
		    obj, f->key, *(char *const *)(const void *)((const char *)base + f->offset));
}

static void release_texts(const struct text_field *table, void *base)
{
	for (const struct text_field *f = table; f->key; f++)
		free(*(char **)(void *)((char *)base + f->offset));
}

/* ---- numbers and words ---- */

static int read_number(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return error_set(e, ERR_INVALID, "%s is missing", key);
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return error_set(e, ERR_INVALID, "%s must be a whole number from %lld to %lld", key,
		    (long long)min, (long long)max);
	*ret = json_integer_value(v);
	return 0;
}

/* null and absent are 0: nothing of that kind. */
static int read_number_or_null(const json_t *obj, const char *key, int64_t *ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	*ret = 0;
	return !v || json_is_null(v) ? 0 : read_number(obj, key, 1, INT64_MAX, ret, e);
}

static void write_number_or_null(json_t *obj, const char *key, int64_t n)
{
	json_object_set_new(obj, key, n ? json_integer(n) : json_null());
}

static int parse_object(const char *text, size_t n, const char *what, json_t **ret, struct error *e)
{
	int rc = json_parse(text, n, ret, e);

	if (rc)
		return rc;
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return error_set(e, ERR_INVALID, "%s must be a JSON object", what);
}

static char *text_and_decref(json_t *v)
{
	char *text = json_text(v);

	json_decref(v);
	return text;
}

/* ---- claim ---- */

#define AT(member) offsetof(struct claim_request, member)
static const struct text_field CLAIM_TEXTS[] = {
    {"name", AT(name), RULE_NAME, REQUIRED, RUNNER_NAME_MAX_BYTES},
    {"claim_id", AT(claim_id), RULE_ID, REQUIRED, ID_MAX_BYTES},
    {"version", AT(version), RULE_LINE, OPTIONAL, ID_MAX_BYTES},
    {.key = NULL},
};
#undef AT

static int read_labels(const json_t *v, char ***ret, struct error *e)
{
	static const struct text_field LABEL = {
	    "labels", 0, RULE_LINE, REQUIRED, RUNNER_NAME_MAX_BYTES};
	size_t n = json_array_size(v);
	int rc = 0;

	if (v && !json_is_array(v))
		return error_set(e, ERR_INVALID, "labels must be a list of texts");
	if (n > RUNNER_LABELS_MAX)
		return error_set(
		    e, ERR_INVALID, "labels has more than %d entries", (int)RUNNER_LABELS_MAX);
	*ret = xcalloc(n + 1, sizeof(**ret));
	for (size_t i = 0; i < n && !rc; i++) {
		const char *s = json_string_value(json_array_get(v, i));

		rc = s ? check_text(&LABEL, s, e)
		       : error_set(e, ERR_INVALID, "labels must be a list of texts");
		if (!rc)
			(*ret)[i] = xstrdup(s);
	}
	return rc;
}

char *claim_request_text(const struct claim_request *c)
{
	json_t *v = json_object(), *labels = json_array();

	write_texts(v, CLAIM_TEXTS, c);
	for (char **label = c->labels; *label; label++)
		json_array_append_new(labels, json_string(*label));
	json_object_set_new(v, "labels", labels);
	json_set_int(v, "wait", c->wait_s);
	return text_and_decref(v);
}

int claim_request_parse(const char *text, size_t n, struct claim_request *ret, struct error *e)
{
	int64_t wait = CLAIM_WAIT_MAX_S;
	json_t *v;
	int rc;

	*ret = (struct claim_request){0};
	rc = parse_object(text, n, "the claim", &v, e);
	if (rc)
		return rc;
	rc = read_texts(v, CLAIM_TEXTS, ret, e);
	if (!rc)
		rc = read_labels(json_object_get(v, "labels"), &ret->labels, e);
	if (!rc && json_object_get(v, "wait"))
		rc = read_number(v, "wait", 0, CLAIM_WAIT_MAX_S, &wait, e);
	ret->wait_s = (int)wait;
	json_decref(v);
	if (rc)
		claim_request_release(ret);
	return rc;
}

void claim_request_release(struct claim_request *c)
{
	release_texts(CLAIM_TEXTS, c);
	strv_free(c->labels);
	*c = (struct claim_request){0};
}

/* ---- offer ---- */

#define AT(member) offsetof(struct lease_offer, member)
static const struct text_field LEASE_TEXTS[] = {
    {"lease_id", AT(lease_id), RULE_ID, REQUIRED, ID_MAX_BYTES},
    {.key = NULL},
};
static const struct text_field DISPATCH_TEXTS[] = {
    {"dispatch_id", AT(dispatch_id), RULE_ID, REQUIRED, ID_MAX_BYTES},
    {"accelerator", AT(accelerator), RULE_NAME, REQUIRED, NAME_MAX_BYTES},
    {"runner", AT(runner), RULE_LINE, REQUIRED, NAME_MAX_BYTES},
    {"run_id", AT(run_id), RULE_LINE, REQUIRED, NAME_MAX_BYTES},
    {.key = NULL},
};
static const struct text_field CHANGE_TEXTS[] = {
    {"repository", AT(repository), RULE_REPOSITORY, REQUIRED, NAME_MAX_BYTES},
    {"head_sha", AT(head_sha), RULE_SHA, REQUIRED, ID_MAX_BYTES},
    {"ref", AT(ref), RULE_LINE, OPTIONAL, TITLE_MAX_BYTES},
    {"title", AT(title), RULE_PROSE, OPTIONAL, TITLE_MAX_BYTES},
    {"author", AT(author), RULE_PROSE, OPTIONAL, NAME_MAX_BYTES},
    {"base_ref", AT(base_ref), RULE_LINE, OPTIONAL, TITLE_MAX_BYTES},
    {"base_sha", AT(base_sha), RULE_SHA, OPTIONAL, ID_MAX_BYTES},
    {"event_type", AT(event_type), RULE_LINE, REQUIRED, ID_MAX_BYTES},
    {"action", AT(action), RULE_LINE, OPTIONAL, ID_MAX_BYTES},
    {"delivery_id", AT(delivery_id), RULE_LINE, OPTIONAL, ID_MAX_BYTES},
    {"change_url", AT(change_url), RULE_LINE, OPTIONAL, URL_MAX_BYTES},
    {.key = NULL},
};
#undef AT

static json_t *change_object(const struct lease_offer *o)
{
	json_t *v = json_object();

	json_set_str(v, "kind", change_kind_name(o->kind));
	write_number_or_null(v, "number", o->number);
	write_texts(v, CHANGE_TEXTS, o);
	return v;
}

static void write_dispatch(json_t *v, const struct lease_offer *o)
{
	json_set_int(v, "attempt", o->attempt);
	write_texts(v, DISPATCH_TEXTS, o);
	json_set_str(v, "visibility", visibility_name(o->visibility));
	json_object_set_new(v, "change", change_object(o));
}

char *lease_offer_text(const struct lease_offer *o)
{
	json_t *v = json_object();

	write_texts(v, LEASE_TEXTS, o);
	json_set_int(v, "lease_ms", o->lease_ms);
	write_number_or_null(v, "job_id", o->job_id);
	write_dispatch(v, o);
	return text_and_decref(v);
}

char *lease_offer_change_text(const struct lease_offer *o)
{
	json_t *v = json_object();

	write_dispatch(v, o);
	return text_and_decref(v);
}

static int read_lease(const json_t *v, struct lease_offer *ret, struct error *e)
{
	const char *visibility = json_get_str(v, "visibility");
	int64_t attempt;
	int rc;

	rc = read_texts(v, LEASE_TEXTS, ret, e);
	if (!rc)
		rc = read_texts(v, DISPATCH_TEXTS, ret, e);
	if (!rc)
		rc = read_number(v, "lease_ms", 1, LEASE_MAX_MS, &ret->lease_ms, e);
	if (!rc)
		rc = read_number(v, "attempt", 1, ATTEMPT_MAX, &attempt, e);
	if (!rc)
		rc = read_number_or_null(v, "job_id", &ret->job_id, e);
	if (rc)
		return rc;
	ret->attempt = (int)attempt;
	ret->visibility = str_eq(visibility, visibility_name(VISIBILITY_PUBLIC))
			      ? VISIBILITY_PUBLIC
			      : VISIBILITY_SUMMARY;
	if (!str_eq(visibility, visibility_name(ret->visibility)))
		return error_set(e, ERR_INVALID, "visibility must be public or summary");
	return 0;
}

static int read_change(const json_t *v, struct lease_offer *ret, struct error *e)
{
	const char *kind = json_get_str(v, "kind");

	if (!json_is_object(v))
		return error_set(e, ERR_INVALID, "change must be an object");
	ret->kind = kind ? change_kind_parse(kind) : N_CHANGE_KINDS;
	if (ret->kind == N_CHANGE_KINDS)
		return error_set(e, ERR_INVALID, "kind must be pull_request, push or nightly");
	if (read_number_or_null(v, "number", &ret->number, e))
		return ERR_INVALID;
	return read_texts(v, CHANGE_TEXTS, ret, e);
}

int lease_offer_parse(const char *text, size_t n, struct lease_offer *ret, struct error *e)
{
	json_t *v;
	int rc;

	*ret = (struct lease_offer){0};
	rc = parse_object(text, n, "the lease", &v, e);
	if (rc)
		return rc;
	rc = read_lease(v, ret, e);
	if (!rc)
		rc = read_change(json_object_get(v, "change"), ret, e);
	json_decref(v);
	if (rc)
		lease_offer_release(ret);
	return rc;
}

void lease_offer_release(struct lease_offer *o)
{
	release_texts(LEASE_TEXTS, o);
	release_texts(DISPATCH_TEXTS, o);
	release_texts(CHANGE_TEXTS, o);
	*o = (struct lease_offer){0};
}

/* ---- answer to a heartbeat ---- */

static const char *const LEASE_WORDS[N_LEASE_WORDS] = {
    [LEASE_ACTIVE] = "active", [LEASE_CANCELLED] = "cancelled", [LEASE_LOST] = "lost"};

static const struct text_field ANSWER_TEXTS[] = {
    {"reason", offsetof(struct lease_answer, reason), RULE_PROSE, OPTIONAL, TITLE_MAX_BYTES},
    {.key = NULL},
};

const char *lease_word_name(enum lease_word w)
{
	return LEASE_WORDS[w];
}

static enum lease_word parse_word(const char *s)
{
	int w = 0;

	while (w < N_LEASE_WORDS && !str_eq(s, LEASE_WORDS[w]))
		w++;
	return (enum lease_word)w;
}

char *lease_answer_text(const struct lease_answer *a)
{
	json_t *v = json_object();

	json_set_str(v, "lease", lease_word_name(a->word));
	if (a->word == LEASE_ACTIVE)
		json_set_int(v, "lease_ms", a->lease_ms);
	else
		write_texts(v, ANSWER_TEXTS, a);
	return text_and_decref(v);
}

int lease_answer_parse(const char *text, size_t n, struct lease_answer *ret, struct error *e)
{
	json_t *v;
	int rc;

	*ret = (struct lease_answer){0};
	rc = parse_object(text, n, "the answer", &v, e);
	if (rc)
		return rc;
	ret->word = parse_word(json_get_str(v, "lease"));
	if (ret->word == N_LEASE_WORDS)
		rc = error_set(e, ERR_INVALID, "lease must be active, cancelled or lost");
	else if (ret->word == LEASE_ACTIVE)
		rc = read_number(v, "lease_ms", 1, LEASE_MAX_MS, &ret->lease_ms, e);
	else
		rc = read_texts(v, ANSWER_TEXTS, ret, e);
	json_decref(v);
	if (rc)
		lease_answer_release(ret);
	return rc;
}

void lease_answer_release(struct lease_answer *a)
{
	release_texts(ANSWER_TEXTS, a);
	*a = (struct lease_answer){0};
}
