#include "report/xml_memory.h"

#include <stdlib.h>

#include "base/alloc.h"

/* In front of what expat sees; the size of the strictest alignment. */
union head {
	size_t bytes;
	max_align_t align;
};

static _Thread_local size_t bytes_left;

static void *take(union head *old, size_t bytes)
{
	size_t had = old ? old->bytes : 0;
	union head *h;

	if (bytes > had && bytes - had > bytes_left)
		return NULL;
	bytes_left += had;
	bytes_left -= bytes;
	h = xrealloc(old, sizeof(*h) + bytes);
	h->bytes = bytes;
	return h + 1;
}

static void *on_malloc(size_t bytes)
{
	return take(NULL, bytes);
}

static void *on_realloc(void *p, size_t bytes)
{
	return take(p ? (union head *)p - 1 : NULL, bytes);
}

static void on_free(void *p)
{
	union head *h = p ? (union head *)p - 1 : NULL;

	if (h)
		bytes_left += h->bytes;
	free(h);
}

XML_Parser xml_parser_new(size_t max_bytes)
{
	static const XML_Memory_Handling_Suite suite = {on_malloc, on_realloc, on_free};
	XML_Parser parser;

	bytes_left = max_bytes;
	parser = XML_ParserCreate_MM(NULL, &suite, NULL);
	if (!parser)
		abort();
	return parser;
}
