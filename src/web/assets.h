/* The pages' script, style and frame, bundled from web/ when outpostd is built (web/build.mjs), so that one binary is everything
 * that has to be installed. Constant. Thread: any. */
#pragma once

struct web_asset {
	const char *path; /* contains a digest of the bytes: the content of a path never changes */
	const char *content_type;
	const unsigned char *bytes;
	size_t n_bytes;
	const unsigned char *gzipped;
	size_t n_gzipped;
};
extern const struct web_asset WEB_ASSETS[];
extern const size_t N_WEB_ASSETS;
/* Links to the scripts of the page of this name (web/src/pages/), so that a browser requests them together with the entry and not
 * after it. NULL ends the list. */
struct web_preload {
	const char *name, *links;
};
extern const struct web_preload WEB_PRELOADS[];
/* web/index.html with the places {{title}}, {{api}}, {{page}} and {{data}}, each once. */
extern const char WEB_PAGE[];

/* True if an Accept-Encoding header (RFC 9110 section 12.5.3) accepts gzip. header may be NULL. "gzip;q=0" and "*;q=0" refuse it,
 * "*" accepts it. */
bool accepts_gzip(const char *header);
