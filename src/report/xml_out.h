/* Text in an XML 1.0 document that we write. What XML cannot say (most control characters, U+FFFE,
 * bytes that are no UTF-8) becomes U+FFFD, so a document is well-formed whatever is in it; all else
 * comes out as it went in. Text for people goes through base/escape.h before. */
#ifndef REPORT_XML_OUT_H
#define REPORT_XML_OUT_H

#include "base/buf.h"

/* As content of an element. */
void xml_put_text(struct buf *out, const char *text);
/* As ` name="value"`; nothing when value is NULL. Line breaks and tabs survive. */
void xml_put_attribute(struct buf *out, const char *name, const char *value);

#endif
