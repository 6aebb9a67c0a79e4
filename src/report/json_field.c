#include "report/json_field.h"

#include "base/json.h"
#include "base/str.h"

json_t *json_foreign_text(const char *text)
{
	struct buf repaired = BUF_INIT(SIZE_MAX / 2);
	json_t *v;

	if (!text)
		return json_null();
	if (utf8_is_valid(text, strlen(text)))
		return json_string(text);
	for (const char *p = text; *p;) {
		size_t n = 1;

		while (n < 4 && p[n] && !utf8_is_valid(p, n))
			n++;
		if (utf8_is_valid(p, n)) {
			buf_append(&repaired, p, n);
			p += n;
		} else {
			buf_append_str(&repaired, "\xEF\xBF\xBD");
			p++;
		}
	}
	v = json_string(buf_str(&repaired));
	buf_release(&repaired);
	return v;
}

void json_set_foreign_text(json_t *obj, const char *key, const char *text)
{
	json_object_set_new(obj, key, json_foreign_text(text));
}
