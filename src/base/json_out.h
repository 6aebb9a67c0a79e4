/* Writes JSON as text, for answers with thousands of values: a jansson value for each would take longer than the rest of the answer.
 *
 * Each function appends one value to a text that begins empty: the member `key` of the object that is open, or, with NULL, an element of
 * the array. The text is the one that json_text() makes of the same values. Texts may come from outside; keys are plain. Thread: any. */
#pragma once

/* bracket: { or [, and } or ] to close. */
void json_out_open(struct buf *out, const char *key, char bracket);
void json_out_close(struct buf *out, char bracket);
/* NULL is null. Bytes that are not UTF-8 become U+FFFD. */
void json_out_text(struct buf *out, const char *key, const char *text);
/* Texts one after the other, as one; NULL ends them. Faster than a format. */
void json_out_texts(struct buf *out, const char *key, const char *first, ...) __attribute__((sentinel));
void json_out_int(struct buf *out, const char *key, int64_t v);
void json_out_id(struct buf *out, const char *key, int64_t v);    /* 0 is null */
void json_out_real(struct buf *out, const char *key, double v);   /* null if it is not finite */
void json_out_time(struct buf *out, const char *key, int64_t ms); /* RFC 3339; 0 is null */
/* true, false or null, or a JSON text that was written or checked before. */
void json_out_raw(struct buf *out, const char *key, const char *json);
/* The same of n bytes. */
void json_out_part(struct buf *out, const char *key, const char *json, size_t n);
/* Takes the reference. */
void json_out_value(struct buf *out, const char *key, json_t *v);
/* The members of an object, into the object that is open. Takes the reference. */
void json_out_members(struct buf *out, json_t *object);
