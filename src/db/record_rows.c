#include "db/record_rows.h"

#include "db/key.h"

/* Reads a JSON array of text. Anything else is an empty list. */
static char **texts_of(const char *text)
{
	char **list = strv_copy(NULL);
	json_t *array = NULL, *item;
	size_t i;

	if (text[0] && json_parse(text, strlen(text), &array, NULL) == 0)
		json_array_foreach(array, i, item) strv_add(&list, json_string_value(item));
	json_decref(array);
	return list;
}

const char *rows_key(const struct rows *r) { return rows_text(r, 0); }

int64_t rows_key_number(const struct rows *r) { return rows_int(r, 0); }

int64_t *rows_key_numbers(struct rows *r, size_t *ret_n)
{
	int64_t *list = NULL;
	size_t n = 0;

	while (rows_next(r))
		*ARRAY_PUSH(list, n) = rows_int(r, 0);
	*ret_n = n;
	return list;
}

char **rows_keys(struct rows *r)
{
	char **list = strv_copy(NULL);

	while (rows_next(r))
		strv_add(&list, rows_text(r, 0));
	return list;
}

int rows_first_word(struct rows *r, const struct words *words)
{
	int word = rows_next(r) ? words_find(words, rows_text(r, 0)) : words->n;

	rows_end(r);
	return word;
}

static void read_digest(const struct rows *r, int column, uint8_t *ret)
{
	size_t n;
	const void *digest = rows_blob(r, column, &n);

	memset(ret, 0, SHA256_BYTES);
	if (n == SHA256_BYTES)
		memcpy(ret, digest, n);
}

void record_read(struct rows *r, const struct record *record, void *ret)
{
	for (size_t i = 0; i < record->n; i++) {
		const struct record_field *f = &record->fields[i];
		void *member = (char *)ret + f->offset;
		int column = rows_next_column(r);

		switch (f->type) {
		case RECORD_INT:
		case RECORD_ID:
		case RECORD_TIME:
			*(int64_t *)member = rows_int(r, column);
			break;
		case RECORD_COUNT:
			*(int64_t *)member = rows_is_null(r, column) ? -1 : rows_int(r, column);
			break;
		case RECORD_BOOL:
			*(bool *)member = rows_int(r, column) != 0;
			break;
		case RECORD_TEXT:
		case RECORD_OBJECT:
			*(char **)member = rows_dup(r, column);
			break;
		case RECORD_COMMIT:
			*(char **)member = commit_dup(r, column);
			break;
		case RECORD_SECONDS:
			*(int64_t *)member =
			    rows_is_null(r, column) || rows_int(r, column) < 0 ? -1 : rows_int(r, column);
			break;
		case RECORD_NUMBER:
			*(double *)member = rows_real(r, column);
			break;
		case RECORD_TEXTS:
			*(char ***)member = texts_of(rows_text(r, column));
			break;
		case RECORD_BLOB:
			((struct record_blob *)member)->p = rows_blob(r, column, &((struct record_blob *)member)->n);
			break;
		case RECORD_BORROWED:
			*(const char **)member = rows_text(r, column);
			break;
		case RECORD_RANK:
			*(int *)member = (int)rows_int(r, column);
			break;
		case RECORD_WORD:
			*(int *)member = words_find(f->words, rows_text(r, column));
			break;
		case RECORD_KEY:
			snprintf(member, ID_BYTES, "%s", rows_text(r, column));
			break;
		case RECORD_GUID:
			*(char **)member = guid_dup(r, column);
			break;
		case RECORD_DIGEST:
			read_digest(r, column, member);
			break;
		}
	}
}

/* A longer fingerprint is cut, and two that differ only behind the cut look equal. All compared lists are far shorter. */
enum { TEXT_MAX_BYTES = 64 << 20 };

/* The length in front keeps two columns apart. */
static void fingerprint_row(const struct rows *r, struct buf *out)
{
	for (int column = 0; column < rows_n_columns(r); column++) {
		size_t n = 0;
		const void *p = rows_is_null(r, column) ? NULL : rows_blob(r, column, &n);

		buf_appendf(out, p || !rows_is_null(r, column) ? "%zu:" : "-", n);
		buf_append(out, p, n);
	}
}

char *rows_fingerprint(struct rows *r)
{
	struct buf text = BUF_INIT(TEXT_MAX_BYTES);

	while (rows_next(r))
		fingerprint_row(r, &text);
	return buf_detach(&text);
}

char **rows_fingerprints(struct rows *r)
{
	char **list = strv_copy(NULL), *name = NULL;
	struct buf text = BUF_INIT(TEXT_MAX_BYTES);
	bool has_row = rows_next(r);

	while (has_row) {
		if (!name || strcmp(name, rows_text(r, 0)) != 0) {
			free(name);
			name = rows_dup(r, 0);
			buf_clear(&text);
			buf_appendf(&text, "%s\n", name);
		}
		fingerprint_row(r, &text);
		has_row = rows_next(r);
		if (!has_row || strcmp(name, rows_text(r, 0)) != 0)
			strv_add(&list, buf_str(&text));
	}
	free(name);
	buf_release(&text);
	return list;
}

bool record_read_first(struct rows *r, const struct record *record, void *ret)
{
	bool is_found = rows_next(r);

	if (is_found)
		record_read(r, record, ret);
	rows_end(r);
	return is_found;
}
