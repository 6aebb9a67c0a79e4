/* Memory for expat with a ceiling: it remembers every name of an element or attribute that it
 * has met, so that 32 MiB of ever new ones would take half a gigabyte. Private to report/. */
#ifndef REPORT_XML_MEMORY_H
#define REPORT_XML_MEMORY_H

#include <expat.h>
#include <stddef.h>

/* A parser that gets at most max_bytes and fails with XML_ERROR_NO_MEMORY beyond them. A thread
 * has one at a time: the count is the thread's, because expat hands its allocator nothing to find
 * a parser by. XML_ParserFree() on the same thread. Never NULL. */
XML_Parser xml_parser_new(size_t max_bytes);

#endif
