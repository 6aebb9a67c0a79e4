/* Which form of a thing an Accept-Encoding header takes (RFC 9110 section 12.5.3). Pure. */
#ifndef WEB_ASSET_H
#define WEB_ASSET_H

#include <stdbool.h>

/* header may be NULL. "gzip;q=0" and "*;q=0" refuse it, "*" takes it. */
bool accepts_gzip(const char *header);

#endif
