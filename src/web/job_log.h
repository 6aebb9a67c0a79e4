/* The byte range of a request (RFC 9110 section 14). Pure. Thread: any. */
#pragma once

enum byte_range {
	BYTE_RANGE_NONE,          /* no range, several, or an invalid one: the whole is sent */
	BYTE_RANGE_PART,          /* 206 */
	BYTE_RANGE_UNSATISFIABLE, /* 416 */
};
/* text: the Range header, may be NULL. PART: *ret_from inclusive, *ret_to exclusive, within [0, bytes]. */
enum byte_range byte_range_parse(const char *text, int64_t bytes, int64_t *ret_from, int64_t *ret_to);
