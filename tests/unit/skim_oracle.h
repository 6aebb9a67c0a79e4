/* Compares skim() with the reference, in everything, and with jansson: both must agree on a body, except where
 * webhook/payload.h documents a difference. Shared by the unit test and the fuzz target. */
#pragma once

#include "skim_reference.h"

/* The text that skim()'s contract gives for a field. */
static inline bool oracle_text_agrees(const json_t *v, const char *text, size_t bytes)
{
	const char *expected = json_string_value(v);

	if (!expected || strlen(expected) != json_string_length(v) || json_string_length(v) >= bytes)
		expected = "";
	return strcmp(expected, text) == 0;
}

static inline bool oracle_fields_agree(const json_t *root, const struct skim *s)
{
	return oracle_text_agrees(json_object_get(root, "action"), s->action, sizeof s->action) &&
	       oracle_text_agrees(json_object_get(root, "ref"), s->ref, sizeof s->ref) &&
	       oracle_text_agrees(
		   json_at(root, "repository", "full_name", NULL), s->repository, sizeof s->repository) &&
	       s->is_deleted == json_is_true(json_object_get(root, "deleted")) &&
	       s->has_base_change == json_is_object(json_at(root, "changes", "base", NULL)) &&
	       s->is_pull_comment == json_is_object(json_at(root, "issue", "pull_request", NULL));
}

/* NULL when skim() gave the reference's answer. */
static inline const char *reference_disagrees(
    const char *body, size_t n, int err, const struct skim *s, const struct error *e)
{
	struct error why = {0};
	struct skim expected;
	int rc = reference_skim(body, n, &expected, &why);

	if (rc != err || !str_eq(why.text, e->text))
		return "did not answer as the reference";
	if (rc)
		return NULL;
	return str_eq(s->action, expected.action) && str_eq(s->repository, expected.repository) &&
		       str_eq(s->ref, expected.ref) && s->is_deleted == expected.is_deleted &&
		       s->has_base_change == expected.has_base_change && s->is_pull_comment == expected.is_pull_comment
		   ? NULL
		   : "read a field differently from the reference";
}

/* NULL when they agree, else the difference. body[n] is '\0'. */
static inline const char *skim_disagrees(const char *body, size_t n)
{
	struct error e = {0};
	struct skim s;
	json_error_t why;
	int err = skim(body, n, &s, &e);
	json_t *root = json_loadb(body, n, JSON_ALLOW_NUL, &why);
	const char *wrong = reference_disagrees(body, n, err, &s, &e);

	if (wrong) {
		json_decref(root);
		return wrong;
	}
	if (!err && !root) {
		/* Values that no double or 64-bit integer holds are JSON all the same. */
		if (json_error_code(&why) != json_error_numeric_overflow &&
		    json_error_code(&why) != json_error_null_byte_in_key)
			wrong = "accepted what is no JSON";
	} else if (!err && !json_is_object(root)) {
		wrong = "accepted what is no object";
	} else if (!err) {
		wrong = oracle_fields_agree(root, &s) ? NULL : "read a field differently";
	} else if (json_is_object(root) && strstr(e.text, "duplicate key")) {
		json_t *strict = json_loadb(body, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);

		wrong = strict ? "saw a duplicate key that is none" : NULL;
		json_decref(strict);
	} else if (json_is_object(root) && !strstr(e.text, "nested deeper") && !memchr(body, 0, n)) {
		/* jansson passes over a raw NUL behind a number; JSON has none anywhere */
		wrong = "refused good JSON";
	}
	json_decref(root);
	return wrong;
}
