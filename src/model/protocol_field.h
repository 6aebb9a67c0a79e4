/* The fields of runners' messages. One table of texts per message drives reading and writing, so
 * that a field can only be written as it is read. What a program made is refused when it is
 * wrong; what people wrote (a title) is put right, because no change may keep a machine from
 * taking it.
 *
 * Pure. Errors are ERR_INVALID and name the field. */
#ifndef MODEL_PROTOCOL_FIELD_H
#define MODEL_PROTOCOL_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum {
	PROTOCOL_ID_MAX_BYTES = 64,
	PROTOCOL_NAME_MAX_BYTES = 256,
	PROTOCOL_TEXT_MAX_BYTES = 1024,
	PROTOCOL_URL_MAX_BYTES = 2048,
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
enum field_presence { FIELD_OPTIONAL /* empty is absent */, FIELD_REQUIRED };

struct text_field {
	const char *key; /* NULL ends the table */
	size_t offset;   /* of a char * */
	enum text_rule rule;
	enum field_presence presence;
	size_t max_bytes;
};

/* Of the struct at base, by the table; protocol_read_texts() stops at the first that is wrong. */
int protocol_read_texts(
    const json_t *obj, const struct text_field *table, void *base, struct error *e) MUST_CHECK;
void protocol_write_texts(json_t *obj, const struct text_field *table, const void *base);
void protocol_release_texts(const struct text_field *table, void *base);
int protocol_check_text(const struct text_field *f, const char *s, struct error *e) MUST_CHECK;

int protocol_read_number(const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret,
    struct error *e) MUST_CHECK;
/* null and absent are 0: nothing of that kind. */
int protocol_read_number_or_null(
    const json_t *obj, const char *key, int64_t *ret, struct error *e) MUST_CHECK;
void protocol_write_number_or_null(json_t *obj, const char *key, int64_t n);

/* A new reference; `what` is its name in the error when it is no object. */
int protocol_parse(
    const char *text, size_t n, const char *what, json_t **ret, struct error *e) MUST_CHECK;
/* free(); takes the reference. */
char *protocol_text(json_t *v);

#endif
