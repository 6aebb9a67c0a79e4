#include "views/record_json.h"

#include <math.h>

enum { CURSOR_MAX_BYTES = 2048 };

static void texts_out(struct buf *out, const char *key, char *const *list)
{
	json_out_open(out, key, '[');
	for (; list && *list; list++)
		json_out_text(out, NULL, *list);
	json_out_close(out, ']');
}

static void field_out(struct buf *out, const struct record_field *f, const void *member)
{
	const char *text;
	int64_t number;
	json_t *v;

	switch (f->type) {
	case RECORD_INT:
		json_out_int(out, f->name, *(const int64_t *)member);
		break;
	case RECORD_ID:
		json_out_id(out, f->name, *(const int64_t *)member);
		break;
	case RECORD_COUNT:
		number = *(const int64_t *)member;
		if (number == -1)
			json_out_raw(out, f->name, "null");
		else
			json_out_int(out, f->name, number);
		break;
	case RECORD_TIME:
		json_out_time(out, f->name, *(const int64_t *)member);
		break;
	case RECORD_BOOL:
		json_out_raw(out, f->name, *(const bool *)member ? "true" : "false");
		break;
	case RECORD_TEXT:
	case RECORD_COMMIT:
		json_out_text(out, f->name, *(char *const *)member);
		break;
	case RECORD_OBJECT:
		text = *(char *const *)member;
		json_out_value(out, f->name, text && !json_parse(text, strlen(text), &v, NULL) ? v : json_null());
		break;
	case RECORD_SECONDS:
		number = *(const int64_t *)member;
		json_out_real(out, f->name, number < 0 ? NAN : (double)number / 1000);
		break;
	case RECORD_NUMBER:
		json_out_real(out, f->name, *(const double *)member);
		break;
	case RECORD_TEXTS:
		texts_out(out, f->name, *(char **const *)member);
		break;
	case RECORD_WORD:
	case RECORD_RANK:
		number = *(const int *)member;
		json_out_text(out, f->name, number < f->words->n ? f->words->names[number] : NULL);
		break;
	case RECORD_KEY:
	case RECORD_GUID:
	case RECORD_DIGEST:
	case RECORD_BLOB:
	case RECORD_BORROWED:
		break; /* no value in the JSON */
	}
}

void record_out(struct buf *out, const struct record *record, const void *values)
{
	for (size_t i = 0; i < record->n; i++)
		if (record->fields[i].name)
			field_out(out, &record->fields[i], (const char *)values + record->fields[i].offset);
}

void record_object_out(struct buf *out, const char *key, const struct record *record, const void *values)
{
	json_out_open(out, key, '{');
	record_out(out, record, values);
	json_out_close(out, '}');
}

void record_list_out(
    struct buf *out, const char *key, const struct record *record, const void *list, size_t n, size_t bytes)
{
	json_out_open(out, key, '[');
	for (size_t i = 0; i < n; i++)
		record_object_out(out, NULL, record, (const char *)list + i * bytes);
	json_out_close(out, ']');
}

json_t *record_json(const struct record *record, const void *values)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	json_t *object;

	record_object_out(&out, NULL, record, values);
	if (json_parse(out.data, out.len, &object, NULL))
		object = json_object(); /* only with more than 64 levels, which no record has */
	buf_release(&out);
	return object;
}

void record_to_json(json_t *object, const struct record *record, const void *values)
{
	json_object_update_new(object, record_json(record, values));
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

void job_url_out(struct buf *out, const char *key, const char *public_url, int64_t job)
{
	char id[24];

	snprintf(id, sizeof(id), "%lld", (long long)job);
	if (job)
		json_out_texts(out, key, public_url, "/jobs/", id, NULL);
	else
		json_out_raw(out, key, "null");
}

json_t *cursor_json(const void *bytes, size_t n)
{
	struct buf cursor = BUF_INIT(CURSOR_MAX_BYTES);

	base64url_encode(bytes, n, &cursor);
	json_t *v = json_string(buf_str(&cursor));
	buf_release(&cursor);
	return v;
}
