/* Claims and the answers to heartbeats; lease_offer.c has what is between them. */
#include "model/runner_protocol.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/protocol_field.h"

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

		rc = s ? protocol_check_text(&LABEL, s, e)
		       : error_set(e, ERR_INVALID, "labels must be a list of texts");
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
	int rc;

	*ret = (struct claim_request){0};
	rc = protocol_parse(text, n, "the claim", &v, e);
	if (rc)
		return rc;
	rc = protocol_read_texts(v, CLAIM_TEXTS, ret, e);
	if (!rc)
		rc = read_labels(json_object_get(v, "labels"), RUNNER_LABELS_MAX,
		    RUNNER_NAME_MAX_BYTES, &ret->labels, e);
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
		rc = read_labels(json_object_get(v, "labels"), RUNNER_NEEDS_MAX,
		    PROTOCOL_TEXT_MAX_BYTES, &ret->labels, e);
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
	const json_t *runners;
	const char *time;
	json_t *v;
	int rc;

	*ret = (struct runner_status){0};
	rc = protocol_parse(text, n, "the status", &v, e);
	if (rc)
		return rc;
	rc = protocol_read_texts(v, STATUS_TEXTS, ret, e);
	time = json_get_str(v, "time");
	if (!rc && (!time || rfc3339_parse(time, &ret->time_ms) || ret->time_ms < 0))
		rc = error_set(e, ERR_INVALID, "time must be a time as in RFC 3339");
	runners = json_object_get(v, "runners");
	if (!rc && (!json_is_array(runners) || json_array_size(runners) > RUNNER_NEEDS_MAX))
		rc = error_set(e, ERR_INVALID, "runners must be a list of at most %d entries",
		    (int)RUNNER_NEEDS_MAX);
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

static const char *const LEASE_WORDS[N_LEASE_WORDS] = {
    [LEASE_ACTIVE] = "active", [LEASE_CANCELLED] = "cancelled", [LEASE_LOST] = "lost"};

static const struct text_field ANSWER_TEXTS[] = {
    {"reason", offsetof(struct lease_answer, reason), RULE_PROSE, FIELD_OPTIONAL,
	PROTOCOL_TEXT_MAX_BYTES},
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
		protocol_write_texts(v, ANSWER_TEXTS, a);
	return protocol_text(v);
}

int lease_answer_parse(const char *text, size_t n, struct lease_answer *ret, struct error *e)
{
	json_t *v;
	int rc;

	*ret = (struct lease_answer){0};
	rc = protocol_parse(text, n, "the answer", &v, e);
	if (rc)
		return rc;
	ret->word = parse_word(json_get_str(v, "lease"));
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
