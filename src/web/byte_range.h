/* What a Range header asks for (RFC 9110 section 14): one range of bytes. Pure. */
#ifndef WEB_BYTE_RANGE_H
#define WEB_BYTE_RANGE_H

#include <stdint.h>

enum byte_range {
	BYTE_RANGE_NONE,          /* none, several, or one that means nothing: all of it is sent */
	BYTE_RANGE_PART,          /* 206 */
	BYTE_RANGE_UNSATISFIABLE, /* 416 */
};
/* text may be NULL. PART: *ret_from inclusive, *ret_to exclusive, within [0, bytes]. */
enum byte_range byte_range_parse(
    const char *text, int64_t bytes, int64_t *ret_from, int64_t *ret_to);

#endif
