#include "config/yaml_text.h"

#include <string.h>

#include "base/str.h"

/* How long the address in a line `listen: [::1]:8080` is; 0: the line says no such thing. */
static size_t bracketed_listen(const char *line, size_t *ret_start)
{
	static const char key[] = "listen:";
	size_t i = sizeof(key) - 1, n_digits;

	if (!str_has_prefix(line, key))
		return 0;
	i += strspn(line + i, " ");
	*ret_start = i;
	if (line[i] != '[')
		return 0;
	i++;
	i += strspn(line + i, "0123456789abcdefABCDEF:.");
	if (line[i] != ']' || line[i + 1] != ':')
		return 0;
	i += 2;
	n_digits = strspn(line + i, "0123456789");
	/* the end of the text counts as a blank here */
	return n_digits && strchr(" \r\n", line[i + n_digits]) ? i + n_digits - *ret_start : 0;
}

void yaml_text_prepare(const char *text, size_t n, struct buf *out)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct buf whole = BUF_INIT(n);
	const char *at;

	if (n >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0) {
		text += sizeof(mark) - 1;
		n -= sizeof(mark) - 1;
	}
	buf_append(&whole, text, n);
	for (at = buf_str(&whole); *at;) {
		size_t n_line = strcspn(at, "\n"), start;
		size_t n_address = bracketed_listen(at, &start);

		n_line += at[n_line] == '\n';
		if (n_address) {
			buf_append(out, at, start);
			buf_appendf(out, "\"%.*s\"", (int)n_address, at + start);
			start += n_address;
			buf_append(out, at + start, n_line - start);
		} else {
			buf_append(out, at, n_line);
		}
		at += n_line;
	}
	buf_release(&whole);
}
