#include "report/json_field.h"

#include "base/json.h"
#include "base/str.h"

void json_set_foreign_text(json_t *obj, const char *key, const char *text)
{
	struct buf repaired = BUF_INIT(SIZE_MAX / 2);

	if (!text || utf8_is_valid(text, strlen(text))) {
		json_set_str(obj, key, text);
		return;
	}
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
	json_set_str(obj, key, buf_str(&repaired));
	buf_release(&repaired);
}
