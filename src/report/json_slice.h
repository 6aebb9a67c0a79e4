/* A large JSON text read piece by piece: a tree of a whole report would take many times its
 * size, and a hostile one ("[[],[],[],…") forty times. The text is checked once, then members
 * and elements are found as slices of it, and only those that are wanted become trees. */
#ifndef REPORT_JSON_SLICE_H
#define REPORT_JSON_SLICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct json_slice {
	const char *p; /* borrowed; NULL: absent */
	size_t n;
};

/* The value that the text is, without blanks and a byte order mark around it. ERR_INVALID with
 * "line N: why": no JSON, no UTF-8, a NUL in a string, nested deeper than 64. What follows
 * takes slices of a checked text only. */
int json_slice_check(
    const char *text, size_t n, struct json_slice *ret, struct error *e) MUST_CHECK;

/* The members (or elements, then keys stay as they are) of an object (or array) in their order;
 * begin with *rest = the whole. False behind the last one. */
struct json_iter {
	const char *p, *end;
};
/* False, and nothing to iterate, when the slice does not begin with `open`: '{' or '['. */
bool json_iter_init(struct json_iter *it, struct json_slice whole, char open);
bool json_iter_next(struct json_iter *it, struct json_slice *ret_key, struct json_slice *ret_value);

/* values[i] = the member called keys[i] (NULL-terminated). ERR_INVALID when `object` is none or
 * has one of them twice; `where` names it ("tests[3]"; "" for the document). */
int json_slice_members(struct json_slice object, const char *where, const char *const *keys,
    struct json_slice *values, struct error *e) MUST_CHECK;
/* The members called keys[i] as one new object. A member that is no string is at most 64 KiB
 * long. What is no object gives null, for whoever checks it next. */
int json_slice_load_members(struct json_slice object, const char *where, const char *const *keys,
    json_t **ret, struct error *e) MUST_CHECK;
/* One value of any kind, as a new reference; the same bound. */
int json_slice_load(
    struct json_slice value, const char *where, json_t **ret, struct error *e) MUST_CHECK;

#endif
