#include "model/runner_protocol.h"

/* ---- claim ---- */

#define AT(member) offsetof(struct claim_request, member)
static const struct text_field CLAIM_TEXTS[] = {
    {"name", AT(name), RULE_NAME, FIELD_REQUIRED, RUNNER_NAME_MAX_BYTES},
    {"claim_id", AT(claim_id), RULE_ID, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"accelerator", AT(accelerator), RULE_NAME, FIELD_OPTIONAL, RUNNER_NAME_MAX_BYTES},
    {"version", AT(version), RULE_LINE, FIELD_OPTIONAL, PROTOCOL_ID_MAX_BYTES},
    {.key = NULL},
};
#undef AT

static int read_labels(const json_t *v, size_t max, size_t max_bytes, char ***ret, struct error *e)
{
	const struct text_field LABEL = {"labels", 0, RULE_LINE, FIELD_REQUIRED, max_bytes};
	size_t n = json_array_size(v);
	int rc = 0;

	if (v && !json_is_array(v))
		return error_set(e, ERR_INVALID, "labels must be a list of texts");
	if (n > max)
		return error_set(e, ERR_INVALID, "labels has more than %zu entries", max);
	*ret = xcalloc(n + 1, sizeof(**ret));
	for (size_t i = 0; i < n && !rc; i++) {
		const char *s = json_string_value(json_array_get(v, i));

		rc =
		    s ? protocol_check_text(&LABEL, s, e) : error_set(e, ERR_INVALID, "labels must be a list of texts");
		if (!rc)
			(*ret)[i] = xstrdup(s);
	}
	return rc;
}

static void write_labels(json_t *obj, char *const *labels)
{
	json_t *list = json_array();

	for (; *labels; labels++)
		json_array_append_new(list, json_string(*labels));
	json_object_set_new(obj, "labels", list);
}

char *claim_request_text(const struct claim_request *c)
{
	json_t *v = json_object();

	protocol_write_texts(v, CLAIM_TEXTS, c);
	write_labels(v, c->labels);
	json_set_int(v, "wait", c->wait_s);
	return protocol_text(v);
}

int claim_request_parse(const char *text, size_t n, struct claim_request *ret, struct error *e)
{
	int64_t wait = CLAIM_WAIT_MAX_S;
	json_t *v;

	*ret = (struct claim_request){0};
	int rc = protocol_parse(text, n, "the claim", &v, e);
	if (rc)
		return rc;
	rc = protocol_read_texts(v, CLAIM_TEXTS, ret, e);
	if (!rc)
		rc = read_labels(
		    json_object_get(v, "labels"), RUNNER_LABELS_MAX, RUNNER_NAME_MAX_BYTES, &ret->labels, e);
	if (!rc && json_object_get(v, "wait"))
		rc = protocol_read_number(v, "wait", 0, CLAIM_WAIT_MAX_S, &wait, e);
	ret->wait_s = (int)wait;
	json_decref(v);
	if (rc)
		claim_request_release(ret);
	return rc;
}

void claim_request_release(struct claim_request *c)
{
	protocol_release_texts(CLAIM_TEXTS, c);
	strv_free(c->labels);
	*c = (struct claim_request){0};
}

/* ---- status ---- */

#define AT(member) offsetof(struct runner_status, member)
static const struct text_field STATUS_TEXTS[] = {
    {"version", AT(version), RULE_LINE, FIELD_REQUIRED, PROTOCOL_ID_MAX_BYTES},
    {"name", AT(name), RULE_NAME, FIELD_REQUIRED, RUNNER_NAME_MAX_BYTES},
    {"accelerator", AT(accelerator), RULE_NAME, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {.key = NULL},
};
#undef AT
#define AT(member) offsetof(struct runner_need, member)
static const struct text_field NEED_TEXTS[] = {
    {"name", AT(name), RULE_NAME, FIELD_REQUIRED, PROTOCOL_NAME_MAX_BYTES},
    {.key = NULL},
};
#undef AT

char *runner_status_text(const struct runner_status *s)
{
	json_t *v = json_object(), *runners = json_array();

	protocol_write_texts(v, STATUS_TEXTS, s);
	json_set_time(v, "time", s->time_ms);
	for (size_t i = 0; i < s->n_runners; i++) {
		const struct runner_need *need = &s->runners[i];
		json_t *one = json_object();

		protocol_write_texts(one, NEED_TEXTS, need);
		write_labels(one, need->labels);
		json_set_int(one, "max_parallel", need->max_parallel);
		json_set_int(one, "waiting", need->n_waiting);
		json_set_int(one, "active", need->n_active);
		json_array_append_new(runners, one);
	}
	json_object_set_new(v, "runners", runners);
	return protocol_text(v);
}

static int read_need(const json_t *v, struct runner_need *ret, struct error *e)
{
	int rc = json_is_object(v) ? protocol_read_texts(v, NEED_TEXTS, ret, e)
				   : error_set(e, ERR_INVALID, "runners must be a list of objects");

	if (!rc)
		rc = read_labels(
		    json_object_get(v, "labels"), RUNNER_NEEDS_MAX, PROTOCOL_TEXT_MAX_BYTES, &ret->labels, e);
	if (!rc)
		rc = protocol_read_number(v, "max_parallel", 1, INT32_MAX, &ret->max_parallel, e);
	if (!rc)
		rc = protocol_read_number(v, "waiting", 0, INT32_MAX, &ret->n_waiting, e);
	if (!rc)
		rc = protocol_read_number(v, "active", 0, INT32_MAX, &ret->n_active, e);
	return rc;
}

int runner_status_parse(const char *text, size_t n, struct runner_status *ret, struct error *e)
{
	json_t *v;

	*ret = (struct runner_status){0};
	int rc = protocol_parse(text, n, "the status", &v, e);
	if (rc)
		return rc;
	rc = protocol_read_texts(v, STATUS_TEXTS, ret, e);
	const char *time = json_get_str(v, "time");
	if (!rc && (!time || rfc3339_parse(time, &ret->time_ms) || ret->time_ms < 0))
		rc = error_set(e, ERR_INVALID, "time must be a time as in RFC 3339");
	const json_t *runners = json_object_get(v, "runners");
	if (!rc && (!json_is_array(runners) || json_array_size(runners) > RUNNER_NEEDS_MAX))
		rc = error_set(e, ERR_INVALID, "runners must be a list of at most %d entries", (int)RUNNER_NEEDS_MAX);
	if (!rc)
		ret->runners = xcalloc(json_array_size(runners) + 1, sizeof(*ret->runners));
	for (size_t i = 0; !rc && i < json_array_size(runners); i++)
		rc = read_need(json_array_get(runners, i), &ret->runners[ret->n_runners++], e);
	json_decref(v);
	if (rc)
		runner_status_release(ret);
	return rc;
}

void runner_status_release(struct runner_status *s)
{
	protocol_release_texts(STATUS_TEXTS, s);
	for (size_t i = 0; i < s->n_runners; i++) {
		protocol_release_texts(NEED_TEXTS, &s->runners[i]);
		strv_free(s->runners[i].labels);
	}
	free(s->runners);
	*s = (struct runner_status){0};
}

/* ---- answer to a heartbeat ---- */

WORDS_DEFINE(lease_word, N_LEASE_WORDS, "active", "cancelled", "lost")

static const struct text_field ANSWER_TEXTS[] = {
    {"reason", offsetof(struct lease_answer, reason), RULE_PROSE, FIELD_OPTIONAL, PROTOCOL_TEXT_MAX_BYTES},
    {.key = NULL},
};

char *lease_answer_text(const struct lease_answer *a)
{
	json_t *v = json_object();

	json_set_str(v, "lease", lease_word_name(a->word));
	if (a->word == LEASE_ACTIVE)
		json_set_int(v, "lease_ms", a->lease_ms);
	else
		protocol_write_texts(v, ANSWER_TEXTS, a);
	return protocol_text(v);
}

int lease_answer_parse(const char *text, size_t n, struct lease_answer *ret, struct error *e)
{
	json_t *v;

	*ret = (struct lease_answer){0};
	int rc = protocol_parse(text, n, "the answer", &v, e);
	if (rc)
		return rc;
	ret->word = lease_word_parse(json_get_str(v, "lease"));
	if (ret->word == N_LEASE_WORDS)
		rc = error_set(e, ERR_INVALID, "lease must be active, cancelled or lost");
	else if (ret->word == LEASE_ACTIVE)
		rc = protocol_read_number(v, "lease_ms", 1, LEASE_MAX_MS, &ret->lease_ms, e);
	else
		rc = protocol_read_texts(v, ANSWER_TEXTS, ret, e);
	json_decref(v);
	if (rc)
		lease_answer_release(ret);
	return rc;
}

void lease_answer_release(struct lease_answer *a)
{
	protocol_release_texts(ANSWER_TEXTS, a);
	*a = (struct lease_answer){0};
}

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

static void write_dispatch(json_t *v, const struct lease_offer *o)
{
	json_set_int(v, "attempt", o->attempt);
	protocol_write_texts(v, DISPATCH_TEXTS, o);
	json_set_str(v, "visibility", visibility_name(o->visibility));
	json_t *change = json_object();

	json_set_str(change, "kind", change_kind_name(o->kind));
	protocol_write_number_or_null(change, "number", o->number);
	protocol_write_texts(change, CHANGE_TEXTS, o);
	json_object_set_new(v, "change", change);
	if (o->source_sha) {
		json_t *source = json_object();

		protocol_write_texts(source, SOURCE_TEXTS, o);
		json_object_set_new(v, "source", source);
	}
	if (o->experiment)
		json_object_set_new(v, "experiment", experiment_json(o->experiment, EXPERIMENT_TESTS_MAX));
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

	int rc = protocol_read_texts(v, LEASE_TEXTS, ret, e);
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
	ret->visibility =
	    str_eq(visibility, visibility_name(VISIBILITY_PUBLIC)) ? VISIBILITY_PUBLIC : VISIBILITY_SUMMARY;
	if (!str_eq(visibility, visibility_name(ret->visibility)))
		return error_set(e, ERR_INVALID, "visibility must be public or summary");
	return 0;
}

static int read_offered_change(const json_t *v, struct lease_offer *ret, struct error *e)
{
	if (!json_is_object(v))
		return error_set(e, ERR_INVALID, "change must be an object");
	ret->kind = change_kind_parse(json_get_str(v, "kind"));
	if (ret->kind == N_CHANGE_KINDS)
		return error_set(e, ERR_INVALID, "kind must be pull_request, push, nightly or experiment");
	if (protocol_read_number_or_null(v, "number", &ret->number, e))
		return ERR_INVALID;
	return protocol_read_texts(v, CHANGE_TEXTS, ret, e);
}

/* The message has the commit twice. They must agree, because a machine that tested another one would prove something false. */
static int read_experiment(const json_t *v, struct lease_offer *ret, struct error *e)
{
	if (!v && ret->kind == CHANGE_EXPERIMENT)
		return error_set(e, ERR_INVALID, "experiment is missing");
	if (!v)
		return 0;
	if (ret->kind != CHANGE_EXPERIMENT)
		return error_set(e, ERR_INVALID, "only a change of kind experiment has experiment");
	ret->experiment = xcalloc(1, sizeof(*ret->experiment));
	int rc = experiment_parse(v, ret->experiment, e);
	if (!rc && !str_eq(ret->experiment->sha, ret->head_sha))
		rc = error_set(e, ERR_INVALID, "head_sha must be the experiment's sha");
	return rc;
}

int lease_offer_parse(const char *text, size_t n, struct lease_offer *ret, struct error *e)
{
	json_t *v;

	*ret = (struct lease_offer){0};
	int rc = protocol_parse(text, n, "the lease", &v, e);
	if (rc)
		return rc;
	const json_t *source = json_object_get(v, "source");
	rc = read_lease(v, ret, e);
	if (!rc)
		rc = read_offered_change(json_object_get(v, "change"), ret, e);
	if (!rc && source)
		rc = json_is_object(source) ? protocol_read_texts(source, SOURCE_TEXTS, ret, e)
					    : error_set(e, ERR_INVALID, "source must be an object");
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
