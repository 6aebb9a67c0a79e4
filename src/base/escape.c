/* Text for people goes through clean_text() first, so that no caller can forget the line break, the direction mark
 * or the broken UTF-8. */

enum { MARKS_MAX = 2 };

static const char REPLACEMENT[] = "\xEF\xBF\xBD";
static const char ELLIPSIS[] = "\xE2\x80\xA6";

struct range {
	uint32_t first, last;
};

static bool is_in_ranges(uint32_t c, const struct range *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= list[i].first && c <= list[i].last)
			return true;
	return false;
}

/* Characters without width or ink, and those that change the direction of the following text. */
static bool is_invisible(uint32_t c)
{
	static const struct range list[] = {{0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160},
	    {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x2800, 0x2800},
	    {0x3164, 0x3164}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE000, 0xF8FF},
	    {0xE0000, 0x10FFFF}};

	return is_in_ranges(c, list, ARRAY_LEN(list));
}

/* Marks that are drawn over the letter before them: a tall stack covers its neighbours. */
static bool is_mark(uint32_t c)
{
	static const struct range list[] = {{0x300, 0x36F}, {0x483, 0x489}, {0x591, 0x5BD}, {0x610, 0x61A},
	    {0x64B, 0x65F}, {0xE31, 0xE31}, {0xE34, 0xE3A}, {0xE47, 0xE4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
	    {0x20D0, 0x20FF}, {0xFE20, 0xFE2F}};

	return is_in_ranges(c, list, ARRAY_LEN(list));
}

static bool is_blank_character(uint32_t c)
{
	return c <= 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
	       c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Length of the sequence at s and its code point; 1 and U+FFFD if it is not UTF-8. */
static size_t decode_utf8(const char *s, uint32_t *ret)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80 ? 1 : u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;

	if (n == 1) {
		*ret = u[0];
		return 1;
	}
	if (strnlen(s, n) < n || !utf8_is_valid(s, n)) {
		*ret = 0xFFFD;
		return 1;
	}
	*ret = u[0] & (0xFFu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | (u[i] & 0x3F);
	return n;
}

/* The text, cleaned as the header describes. free(). */
static char *clean_text(const char *text, size_t max_chars)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	bool wants_space = false;
	size_t n_chars = 0, n_marks = 0, step;

	for (; *text; text += step) {
		uint32_t c;

		step = decode_utf8(text, &c);
		if (is_blank_character(c)) {
			wants_space = out.len > 0;
			continue;
		}
		n_marks = is_mark(c) ? n_marks + 1 : 0;
		/* They choose between two drawings of one character, so removing them loses
		 * nothing. */
		if (n_marks > MARKS_MAX || (c >= 0xFE00 && c <= 0xFE0F))
			continue;
		n_chars += wants_space ? 2 : 1;
		if (max_chars && n_chars > max_chars) {
			buf_append_str(&out, ELLIPSIS);
			break;
		}
		if (wants_space)
			buf_append_char(&out, ' ');
		wants_space = false;
		if (c == 0xFFFD || is_invisible(c))
			buf_append_str(&out, REPLACEMENT);
		else
			buf_append(&out, text, step);
	}
	return out.data ? buf_take(&out) : xstrdup("");
}

void escape_line(struct buf *out, const char *text, size_t max_chars)
{
	char *line = clean_text(text, max_chars);

	buf_append_str(out, line);
	free(line);
}

void escape_html(struct buf *out, const char *text)
{
	char *line = clean_text(text, 0);

	for (const char *p = line; *p; p++) {
		switch (*p) {
		case '&':
			buf_append_str(out, "&amp;");
			break;
		case '<':
			buf_append_str(out, "&lt;");
			break;
		case '>':
			buf_append_str(out, "&gt;");
			break;
		case '"':
			buf_append_str(out, "&quot;");
			break;
		case '\'':
			buf_append_str(out, "&#39;");
			break;
		default:
			buf_append_char(out, *p);
		}
	}
	free(line);
}

/* The fence is longer than any run of backticks inside, so nothing inside can close it. */
static void append_code(struct buf *out, const char *line, enum markdown_place place)
{
	size_t n = 1, run = 0, length = strlen(line), n_backslashes = 0;

	if (length == 0) {
		line = "(empty)";
		length = strlen(line);
	}
	for (const char *p = line; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		n = run >= n ? run + 1 : n;
	}
	const char *pad = line[0] == '`' || line[length - 1] == '`' ? " " : "";
	for (size_t i = 0; i < n; i++)
		buf_append_char(out, '`');
	buf_append_str(out, pad);
	/* In a cell, GFM splits rows at pipes before it reads code, and reads a backslash and the next character as a
	 * pair. After an odd number of backslashes, "\|" would be a pair of backslashes and a bare pipe, so an odd run
	 * gets one more. */
	for (; *line; line++) {
		if (*line == '|' && place == MARKDOWN_CELL) {
			if (n_backslashes % 2)
				buf_append_char(out, '\\');
			buf_append_char(out, '\\');
		}
		n_backslashes = *line == '\\' ? n_backslashes + 1 : 0;
		buf_append_char(out, *line);
	}
	buf_append_str(out, pad);
	for (size_t i = 0; i < n; i++)
		buf_append_char(out, '`');
}

void escape_markdown_code(struct buf *out, const char *text, size_t max_chars, enum markdown_place place)
{
	char *line = clean_text(text, max_chars);

	append_code(out, line, place);
	free(line);
}

static bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }

/* GitHub may read a word of seven or more hexadecimal digits as a commit. */
static bool has_commit_like_word(const char *s)
{
	static const char word[] = "0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ";
	static const char hex[] = "0123456789abcdefABCDEF";

	while (*s) {
		size_t n = strspn(s, word);

		if (n >= 7 && strspn(s, hex) == n)
			return true;
		s += n ? n : 1;
	}
	return false;
}

/* True for text that is neither Markdown nor a reference of GitHub's: it starts with a letter (not a list), has dots only
 * inside numbers (not www. or a host name), and contains neither "ABC-12" (GH-1 and custom references) nor a commit. */
static bool is_harmless(const char *s)
{
	if (!is_letter(s[0]) || has_commit_like_word(s))
		return false;
	for (const char *p = s; *p; p++) {
		if (is_letter(*p) || is_ascii_digit(*p) || *p == ' ')
			continue;
		if (!strchr("-.,()/+", *p))
			return false;
		if (*p == '.' && (!is_ascii_digit(p[-1]) || !is_ascii_digit(p[1])))
			return false;
		if (*p == '-' && is_ascii_digit(p[1]))
			return false;
	}
	return true;
}

void escape_markdown_label(struct buf *out, const char *text, size_t max_chars, enum markdown_place place)
{
	char *line = clean_text(text, max_chars);

	if (is_harmless(line))
		buf_append_str(out, line);
	else
		append_code(out, line, place);
	free(line);
}

/* The length of host[:port]; 0: it is neither a name nor an IPv4 or bracketed IPv6 address. */
static size_t authority_length(const char *s)
{
	static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	size_t n, n_port;

	if (s[0] == '[') {
		n = 1 + strspn(s + 1, "0123456789abcdefABCDEF:.");
		if (n == 1 || s[n] != ']')
			return 0;
		n++;
	} else {
		n = strspn(s, name_chars);
		if (n == 0 || s[0] == '.' || s[0] == '-')
			return 0;
	}
	if (s[n] == ':') {
		n_port = strspn(s + n + 1, "0123456789");
		if (n_port == 0 || n_port > 5)
			return 0;
		n += 1 + n_port;
	}
	return s[n] == '\0' || strchr("/?#", s[n]) ? n : 0;
}

bool escape_url(struct buf *out, const char *url, size_t max_bytes, enum url_rule rule)
{
	size_t n_scheme, n_authority;

	if (str_has_prefix(url, "https://"))
		n_scheme = strlen("https://");
	else if (rule == URL_HTTPS_OR_HTTP && str_has_prefix(url, "http://"))
		n_scheme = strlen("http://");
	else
		return false;
	n_authority = authority_length(url + n_scheme);
	if (n_authority == 0 || strlen(url) > max_bytes)
		return false;
	buf_append(out, url, n_scheme + n_authority);
	const char *s = url + n_scheme + n_authority;
	for (; *s; s++) {
		bool is_escape = *s == '%' && hex_digit(s[1]) >= 0 && hex_digit(s[2]) >= 0;

		if (*s == '&')
			buf_append_str(out, "&amp;");
		else if (is_escape)
			buf_append_char(out, *s);
		else
			percent_encode(out, s, 1, ":/?#@!+,;=");
	}
	return true;
}

/* Bytes of the character at s. *ret_is_xml: XML can contain it. */
static size_t xml_character_bytes(const char *s, bool *ret_is_xml)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	*ret_is_xml = c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
	if (strnlen(s, n) < n || !utf8_is_valid(s, n)) {
		*ret_is_xml = false;
		return 1;
	}
	if (n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (unsigned char)s[2] >= 0xbe)
		*ret_is_xml = false;
	return n;
}

static const char *xml_entity(char c, bool is_value)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;"; /* content must not contain "]]>" */
	case '"':
		return is_value ? "&quot;" : NULL;
	case '\n':
		return is_value ? "&#10;" : NULL;
	case '\t':
		return is_value ? "&#9;" : NULL;
	case '\r':
		return "&#13;";
	default:
		return NULL;
	}
}

static void append_xml(struct buf *out, const char *s, bool is_value)
{
	while (*s) {
		bool is_xml;
		size_t n = xml_character_bytes(s, &is_xml);
		const char *entity = xml_entity(*s, is_value);

		if (!is_xml)
			buf_append_str(out, REPLACEMENT);
		else if (entity)
			buf_append_str(out, entity);
		else
			buf_append(out, s, n);
		s += n;
	}
}

void escape_xml_text(struct buf *out, const char *text) { append_xml(out, text, false); }

void escape_xml_attribute(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_char(out, ' ');
	buf_append_str(out, name);
	buf_append_str(out, "=\"");
	append_xml(out, value, true);
	buf_append_char(out, '"');
}
