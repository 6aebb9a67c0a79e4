#include "views/record_json.h"

enum { CURSOR_MAX_BYTES = 2048 };

/* NULL: the type has no value in the JSON. */
static json_t *field_json(const struct record_field *f, const void *member)
{
	const char *text;
	int64_t number;
	json_t *v;

	switch (f->type) {
	case RECORD_INT:
		return json_integer(*(const int64_t *)member);
	case RECORD_ID:
	case RECORD_COUNT:
		number = *(const int64_t *)member;
		return number == (f->type == RECORD_ID ? 0 : -1) ? json_null() : json_integer(number);
	case RECORD_TIME:
		return json_time(*(const int64_t *)member);
	case RECORD_BOOL:
		return json_boolean(*(const bool *)member);
	case RECORD_TEXT:
	case RECORD_COMMIT:
		return json_foreign_text(*(char *const *)member);
	case RECORD_OBJECT:
		text = *(char *const *)member;
		return text && !json_parse(text, strlen(text), &v, NULL) ? v : json_null();
	case RECORD_SECONDS:
		return seconds_json(*(const int64_t *)member);
	case RECORD_NUMBER:
		return json_real(*(const double *)member);
	case RECORD_TEXTS:
		return json_foreign_texts(*(char **const *)member);
	case RECORD_WORD:
	case RECORD_RANK:
		number = *(const int *)member;
		return json_foreign_text(number < f->words->n ? f->words->names[number] : NULL);
	case RECORD_KEY:
	case RECORD_GUID:
	case RECORD_DIGEST:
	case RECORD_BLOB:
	case RECORD_BORROWED:
		break;
	}
	return NULL;
}

void record_to_json(json_t *object, const struct record *record, const void *values)
{
	for (size_t i = 0; i < record->n; i++) {
		const struct record_field *f = &record->fields[i];
		json_t *v = f->name ? field_json(f, (const char *)values + f->offset) : NULL;

		if (v)
			json_object_set_new(object, f->name, v);
	}
}

json_t *record_json(const struct record *record, const void *values)
{
	json_t *object = json_object();

	record_to_json(object, record, values);
	return object;
}

json_t *record_field_schema(const struct record_field *f)
{
	static const struct {
		const char *type, *format, *pattern;
		bool may_be_null;
	} TYPES[] = {
	    [RECORD_INT] = {"integer", NULL, NULL, false},
	    [RECORD_ID] = {"integer", NULL, NULL, true},
	    [RECORD_COUNT] = {"integer", NULL, NULL, true},
	    [RECORD_TIME] = {"string", "date-time", NULL, true},
	    [RECORD_BOOL] = {"boolean", NULL, NULL, false},
	    [RECORD_TEXT] = {"string", NULL, NULL, true},
	    [RECORD_COMMIT] = {"string", NULL, "^[0-9a-f]{40}$", true},
	    [RECORD_OBJECT] = {"object", NULL, NULL, true},
	    [RECORD_SECONDS] = {"number", NULL, NULL, true},
	    [RECORD_NUMBER] = {"number", NULL, NULL, false},
	    [RECORD_TEXTS] = {"array", NULL, NULL, false},
	    [RECORD_WORD] = {"string", NULL, NULL, true},
	    [RECORD_RANK] = {"string", NULL, NULL, true},
	};
	json_t *schema = json_object(), *type = json_array(), *names;

	/* The other types have no value in the JSON. */
	json_array_append_new(type, json_string(TYPES[f->type].type ? TYPES[f->type].type : "null"));
	if (TYPES[f->type].may_be_null)
		json_array_append_new(type, json_string("null"));
	json_object_set_new(schema, "type", type);
	if (TYPES[f->type].format)
		json_set_str(schema, "format", TYPES[f->type].format);
	if (TYPES[f->type].pattern)
		json_set_str(schema, "pattern", TYPES[f->type].pattern);
	if (f->words) {
		names = json_array();
		for (int i = 0; i < f->words->n; i++)
			if (f->words->names[i])
				json_array_append_new(names, json_string(f->words->names[i]));
		json_object_set_new(schema, "enum", names);
	}
	if (f->description[0])
		json_set_str(schema, "description", f->description);
	return schema;
}

json_t *links_json(const char *docs_url, const char *help_url)
{
	return json_pack("{s:o, s:o}", "docs", json_foreign_text(docs_url), "help", json_foreign_text(help_url));
}

json_t *seconds_json(int64_t ms) { return ms < 0 ? json_null() : json_real((double)ms / 1000); }

json_t *share_json(int64_t part, int64_t whole)
{
	return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

json_t *change_url_json(const char *public_url, enum change_kind kind, int64_t number, const char *sha)
{
	if (number)
		return json_sprintf("%s/pulls/%lld", public_url, (long long)number);
	if (!sha)
		return json_null();
	return json_sprintf("%s/commits/%s%s", public_url, sha, kind == CHANGE_NIGHTLY ? "?kind=nightly" : "");
}

json_t *job_url_json(const char *public_url, int64_t job)
{
	return job ? json_sprintf("%s/jobs/%lld", public_url, (long long)job) : json_null();
}

json_t *cursor_json(const void *bytes, size_t n)
{
	struct buf cursor = BUF_INIT(CURSOR_MAX_BYTES);

	base64url_encode(bytes, n, &cursor);
	json_t *v = json_string(buf_str(&cursor));
	buf_release(&cursor);
	return v;
}
