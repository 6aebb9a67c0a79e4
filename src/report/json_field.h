/* Text that a vendor or an author wrote, as a JSON field. */
#ifndef REPORT_JSON_FIELD_H
#define REPORT_JSON_FIELD_H

#include <jansson.h>

/* As json_set_str(), but bytes that are no UTF-8 become U+FFFD: jansson would refuse them. */
void json_set_foreign_text(json_t *obj, const char *key, const char *text);
/* The same by itself: a new reference. */
json_t *json_foreign_text(const char *text);

#endif
