#include "model/experiment.h"

#include "model/runner_protocol.h"

WORDS_DEFINE(reruns, N_RERUNS, "none", "tests", "whole")
WORDS_DEFINE(experiment_side, N_EXPERIMENT_SIDES, "head", "base")

void experiment_request_release(struct experiment_request *r)
{
	FREE_ALL(r->of, r->sha, r->environment);
	strv_free(r->tests);
	strv_free(r->jobs);
	*r = (struct experiment_request){.id = 0};
}

#define AT(member) offsetof(struct experiment_request, member)
static const struct text_field TEXTS[] = {
    {"of", AT(of), RULE_ID, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"sha", AT(sha), RULE_SHA, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {.key = NULL},
};
#undef AT

static json_t *list_json(char *const *list, size_t max)
{
	json_t *v = json_array();

	for (size_t i = 0; i < max && list[i]; i++)
		json_array_append_new(v, json_string(list[i]));
	return v;
}

static json_t *environment_json(const char *text)
{
	size_t n = text ? strlen(text) : 0;
	json_t *v = NULL;

	if (n > 0 && n <= EXPERIMENT_ENVIRONMENT_MAX_BYTES && !protocol_parse(text, n, "environment", &v, NULL))
		return v;
	return NULL;
}

json_t *experiment_json(const struct experiment_request *r, size_t n_tests)
{
	json_t *v = json_object(), *environment = environment_json(r->environment);

	json_set_int(v, "id", r->id);
	json_set_str(v, "of", r->of);
	json_set_str(v, "side", experiment_side_name(r->side));
	json_set_str(v, "sha", r->sha);
	json_object_set_new(v, "tests", list_json(r->tests, n_tests));
	json_object_set_new(v, "jobs", list_json(r->jobs, EXPERIMENT_JOBS_MAX));
	if (environment)
		json_object_set_new(v, "environment", environment);
	if (strv_len((const char *const *)r->tests) > n_tests)
		json_object_set_new(v, "truncated", json_true());
	return v;
}

static int read_list(const json_t *obj, const char *key, size_t max, size_t max_bytes, char ***ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);
	size_t n = json_array_size(v);

	if (!json_is_array(v))
		return error_set(e, ERR_INVALID, "%s must be a list of texts", key);
	if (n > max)
		return error_set(e, ERR_INVALID, "%s has more than %zu entries", key, max);
	*ret = xcalloc(n + 1, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(v, i);
		size_t n_bytes = json_string_length(one);

		if (!json_is_string(one))
			return error_set(e, ERR_INVALID, "%s must be a list of texts", key);
		if (n_bytes == 0 || n_bytes > max_bytes)
			return error_set(
			    e, ERR_INVALID, "%s[%zu] must be 1 to %zu bytes, not %zu", key, i, max_bytes, n_bytes);
		(*ret)[i] = xstrdup(json_string_value(one));
	}
	return 0;
}

static int read_environment(const json_t *v, char **ret, struct error *e)
{
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_object(v))
		return error_set(e, ERR_INVALID, "environment must be an object");
	*ret = json_text(v);
	if (strlen(*ret) > EXPERIMENT_ENVIRONMENT_MAX_BYTES)
		return error_set(
		    e, ERR_INVALID, "environment has more than %d bytes", (int)EXPERIMENT_ENVIRONMENT_MAX_BYTES);
	return 0;
}

int experiment_parse(const json_t *v, struct experiment_request *ret, struct error *e)
{
	*ret = (struct experiment_request){.id = 0};
	if (!json_is_object(v))
		return error_set(e, ERR_INVALID, "experiment must be an object");
	int rc = protocol_read_number(v, "id", 1, INT64_MAX, &ret->id, e);
	if (!rc)
		rc = protocol_read_texts(v, TEXTS, ret, e);
	ret->side = experiment_side_parse(json_get_str(v, "side"));
	if (!rc && ret->side == N_EXPERIMENT_SIDES)
		rc = error_set(e, ERR_INVALID, "side must be head or base");
	if (!rc)
		rc = read_list(v, "tests", EXPERIMENT_TESTS_MAX, EXPERIMENT_TEST_MAX_BYTES, &ret->tests, e);
	if (!rc && !ret->tests[0])
		rc = error_set(e, ERR_INVALID, "tests must not be empty");
	if (!rc)
		rc = read_list(v, "jobs", EXPERIMENT_JOBS_MAX, EXPERIMENT_JOB_MAX_BYTES, &ret->jobs, e);
	if (!rc)
		rc = read_environment(json_object_get(v, "environment"), &ret->environment, e);
	return rc;
}

bool experiment_test_is_line(const char *test)
{
	for (const unsigned char *c = (const unsigned char *)test; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) ||
		    (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9)))
			return false;
	return true;
}
