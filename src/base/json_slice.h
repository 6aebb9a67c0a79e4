/* Reads a large JSON text in parts. A tree of a whole report would take many times its size, and of a hostile
 * one ("[[],[],[],…") forty times. So the text is checked once, then members and elements are found as slices
 * of it, and only the needed slices become trees. Thread: any. */
#pragma once

struct json_slice {
	const char *p; /* borrowed; NULL: absent */
	size_t n;
};

/* Checks the whole text and returns its value, without a byte order mark and blanks around it. ERR_INVALID
 * with "line N: why": not JSON, not UTF-8, a NUL in a string, nested deeper than 64. All functions below take
 * slices of a checked text only. */
int json_slice_check(const char *text, size_t n, struct json_slice *ret, struct error *e) MUST_CHECK;

/* The same check in steps, for a caller that reads a few members in the same pass. A value is scanned as a whole, or, if it is an
 * object, member by member. */
struct json_scan {
	const char *p, *end, *text;
	int depth;
	const char *why; /* static; at p */
};
/* Moves to the text's value. ERR_INVALID as below. */
int json_scan_begin(struct json_scan *s, const char *text, size_t n, struct error *e) MUST_CHECK;
/* Moves from an object's '{' (is_first) or the end of a member to the next member's value, or past the '}'. *ret_key has its
 * quotes. False: the object has ended, or s->why. */
bool json_scan_member(struct json_scan *s, bool is_first, struct json_slice *ret_key);
/* Moves past a value. False: s->why. */
bool json_scan_value(struct json_scan *s, struct json_slice *ret);
/* After the text's value: 0, or ERR_INVALID with "line N: why", also for s->why. */
int json_scan_end(struct json_scan *s, struct error *e) MUST_CHECK;

/* Iterates over the members of an object, or over the elements of an array (then keys stay as they are), in
 * their order. */
struct json_iter {
	const char *p, *end;
};
/* False, and nothing to iterate, if the slice does not begin with `open`: '{' or '['. */
bool json_iter_init(struct json_iter *it, struct json_slice whole, char open);
/* False after the last one. */
bool json_iter_next(struct json_iter *it, struct json_slice *ret_key, struct json_slice *ret_value);

/* values[i] = the member called keys[i] (NULL-terminated). ERR_INVALID if `object` is not an object or has
 * one of the members twice; `where` names the object ("tests[3]"; "" for the document). */
int json_slice_members(struct json_slice object, const char *where, const char *const *keys, struct json_slice *values,
    struct error *e) MUST_CHECK;
/* The members called keys[i] as one new object. A member other than a string has at most 64 KiB. If the slice
 * is not an object the result is null, for the caller's own check. */
int json_slice_load_members(
    struct json_slice object, const char *where, const char *const *keys, json_t **ret, struct error *e) MUST_CHECK;
/* One value of any kind, as a new reference; the same bound. */
int json_slice_load(struct json_slice value, const char *where, json_t **ret, struct error *e) MUST_CHECK;
