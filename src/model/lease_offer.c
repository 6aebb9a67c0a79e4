/* The answer to a claim; see runner_protocol.h. */
#include "base/alloc.h"
#include "base/str.h"
#include "model/protocol_field.h"
#include "model/runner_protocol.h"

enum { ATTEMPT_MAX = 1000000 };

#define AT(member) offsetof(struct lease_offer, member)
static const struct text_field LEASE_TEXTS[] = {
    {"lease_id", AT(lease_id), RULE_ID, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {.key = NULL},
};
static const struct text_field DISPATCH_TEXTS[] = {
    {"dispatch_id", AT(dispatch_id), RULE_ID, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"accelerator", AT(accelerator), RULE_NAME, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {"runner", AT(runner), RULE_LINE, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {"run_id", AT(run_id), RULE_LINE, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {.key = NULL},
};
static const struct text_field CHANGE_TEXTS[] = {
    {"repository", AT(repository), RULE_REPOSITORY, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {"head_sha", AT(head_sha), RULE_SHA, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"ref", AT(ref), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_TEXT_MAX_BYTES},
    {"title", AT(title), RULE_PROSE, FIELD_OPTIONAL, PROTOCOL_TEXT_MAX_BYTES},
    {"author", AT(author), RULE_PROSE, FIELD_OPTIONAL, PROTOCOL_NAME_MAX_BYTES},
    {"base_ref", AT(base_ref), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_TEXT_MAX_BYTES},
    {"base_sha", AT(base_sha), RULE_SHA, FIELD_OPTIONAL, PROTOCOL_ID_MAX_BYTES},
    {"event_type", AT(event_type), RULE_LINE, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"action", AT(action), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_ID_MAX_BYTES},
    {"delivery_id", AT(delivery_id), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_ID_MAX_BYTES},
    {"change_url", AT(change_url), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_URL_MAX_BYTES},
    {.key = NULL},
};
static const struct text_field SOURCE_TEXTS[] = {
    {"git_url", AT(source_git_url), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_URL_MAX_BYTES},
    {"branch", AT(source_branch), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_TEXT_MAX_BYTES},
    {"sha", AT(source_sha), RULE_SHA, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {.key = NULL},
};
#undef AT

static json_t *change_object(const struct lease_offer *o)
{
	json_t *v = json_object();

	json_set_str(v, "kind", change_kind_name(o->kind));
	protocol_write_number_or_null(v, "number", o->number);
	protocol_write_texts(v, CHANGE_TEXTS, o);
	return v;
}

static void write_dispatch(json_t *v, const struct lease_offer *o)
{
	json_set_int(v, "attempt", o->attempt);
	protocol_write_texts(v, DISPATCH_TEXTS, o);
	json_set_str(v, "visibility", visibility_name(o->visibility));
	json_object_set_new(v, "change", change_object(o));
	if (o->source_sha) {
		json_t *source = json_object();

		protocol_write_texts(source, SOURCE_TEXTS, o);
		json_object_set_new(v, "source", source);
	}
	if (o->experiment)
		json_object_set_new(
		    v, "experiment", experiment_json(o->experiment, EXPERIMENT_TESTS_MAX));
}

char *lease_offer_text(const struct lease_offer *o)
{
	json_t *v = json_object();

	protocol_write_texts(v, LEASE_TEXTS, o);
	json_set_int(v, "lease_ms", o->lease_ms);
	protocol_write_number_or_null(v, "job_id", o->job_id);
	write_dispatch(v, o);
	return protocol_text(v);
}

char *lease_offer_change_text(const struct lease_offer *o)
{
	json_t *v = json_object();

	write_dispatch(v, o);
	return protocol_text(v);
}

static int read_lease(const json_t *v, struct lease_offer *ret, struct error *e)
{
	const char *visibility = json_get_str(v, "visibility");
	int64_t attempt;
	int rc;

	rc = protocol_read_texts(v, LEASE_TEXTS, ret, e);
	if (!rc)
		rc = protocol_read_texts(v, DISPATCH_TEXTS, ret, e);
	if (!rc)
		rc = protocol_read_number(v, "lease_ms", 1, LEASE_MAX_MS, &ret->lease_ms, e);
	if (!rc)
		rc = protocol_read_number(v, "attempt", 1, ATTEMPT_MAX, &attempt, e);
	if (!rc)
		rc = protocol_read_number_or_null(v, "job_id", &ret->job_id, e);
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
		return error_set(
		    e, ERR_INVALID, "kind must be pull_request, push, nightly or experiment");
	if (protocol_read_number_or_null(v, "number", &ret->number, e))
		return ERR_INVALID;
	return protocol_read_texts(v, CHANGE_TEXTS, ret, e);
}

static int read_source(const json_t *v, struct lease_offer *ret, struct error *e)
{
	if (!json_is_object(v))
		return error_set(e, ERR_INVALID, "source must be an object");
	return protocol_read_texts(v, SOURCE_TEXTS, ret, e);
}

/* The commit is named twice, and a machine that tests another one proves something false. */
static int read_experiment(const json_t *v, struct lease_offer *ret, struct error *e)
{
	int rc;

	if (!v && ret->kind == CHANGE_EXPERIMENT)
		return error_set(e, ERR_INVALID, "experiment is missing");
	if (!v)
		return 0;
	if (ret->kind != CHANGE_EXPERIMENT)
		return error_set(e, ERR_INVALID, "only a change of kind experiment has experiment");
	ret->experiment = xcalloc(1, sizeof(*ret->experiment));
	rc = experiment_parse(v, ret->experiment, e);
	if (!rc && !str_eq(ret->experiment->sha, ret->head_sha))
		rc = error_set(e, ERR_INVALID, "head_sha must be the experiment's sha");
	return rc;
}

int lease_offer_parse(const char *text, size_t n, struct lease_offer *ret, struct error *e)
{
	json_t *v;
	int rc;

	*ret = (struct lease_offer){0};
	rc = protocol_parse(text, n, "the lease", &v, e);
	if (rc)
		return rc;
	rc = read_lease(v, ret, e);
	if (!rc)
		rc = read_change(json_object_get(v, "change"), ret, e);
	if (!rc && json_object_get(v, "source"))
		rc = read_source(json_object_get(v, "source"), ret, e);
	if (!rc)
		rc = read_experiment(json_object_get(v, "experiment"), ret, e);
	json_decref(v);
	if (rc)
		lease_offer_release(ret);
	return rc;
}

void lease_offer_release(struct lease_offer *o)
{
	protocol_release_texts(LEASE_TEXTS, o);
	protocol_release_texts(DISPATCH_TEXTS, o);
	protocol_release_texts(CHANGE_TEXTS, o);
	protocol_release_texts(SOURCE_TEXTS, o);
	if (o->experiment)
		experiment_request_release(o->experiment);
	free(o->experiment);
	*o = (struct lease_offer){0};
}
