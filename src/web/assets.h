/* The pages' script, style and frame, bundled from web/ when outpostd is built (web/build.mjs), so
 * that one binary is all there is to install. */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include <stddef.h>

struct web_asset {
	const char *path; /* bears a digest of the bytes: what lies there never changes */
	const char *content_type;
	const unsigned char *bytes;
	size_t n_bytes;
	const unsigned char *gzipped;
	size_t n_gzipped;
};
extern const struct web_asset WEB_ASSETS[];
extern const size_t N_WEB_ASSETS;
/* Links to what a page of this name (web/src/pages/) loads besides what all load, so that a browser asks
 * for it beside the entry and not after it. NULL ends the list. */
struct web_preload {
	const char *name, *links;
};
extern const struct web_preload WEB_PRELOADS[];
/* web/index.html with {{title}}, {{api}}, {{page}} and {{data}} to be filled in, each once. */
extern const char WEB_PAGE[];

#endif
