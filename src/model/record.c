#include "model/record.h"

int words_find(const struct words *words, const char *name)
{
	for (int i = 0; name && i < words->n; i++)
		if (words->names[i] && strcmp(words->names[i], name) == 0)
			return i;
	return words->n;
}

/* The field as one owned text, or as a list of owned texts; NULL: it is not. */
static char **text_of_field(const struct record_field *f, void *values)
{
	bool is_text =
	    f->type == RECORD_TEXT || f->type == RECORD_COMMIT || f->type == RECORD_OBJECT || f->type == RECORD_GUID;

	return is_text ? (char **)((char *)values + f->offset) : NULL;
}

static char ***texts_of_field(const struct record_field *f, void *values)
{
	return f->type == RECORD_TEXTS ? (char ***)((char *)values + f->offset) : NULL;
}

void record_release(const struct record *r, void *values)
{
	for (size_t i = 0; i < r->n; i++) {
		char **text = text_of_field(&r->fields[i], values), ***texts = texts_of_field(&r->fields[i], values);

		if (text)
			FREE_AND_NULL(*text);
		if (texts) {
			strv_free(*texts);
			*texts = NULL;
		}
	}
}

void record_copy_texts(const struct record *r, void *values)
{
	for (size_t i = 0; i < r->n; i++) {
		char **text = text_of_field(&r->fields[i], values), ***texts = texts_of_field(&r->fields[i], values);

		if (text)
			*text = xstrdup_or_null(*text);
		if (texts)
			*texts = strv_copy((const char *const *)*texts);
	}
}
