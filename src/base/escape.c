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

/* How many characters of ASCII with ink the text begins with, up to max: nearly all of most texts, which need no closer look. */
static size_t n_printable(const char *text, size_t max)
{
	size_t n = 0;

	while (n < max && text[n] > ' ' && text[n] < 0x7F)
		n++;
	return n;
}

/* The text, cleaned as the header describes. free(). */
static char *clean_text(const char *text, size_t max_chars)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	bool wants_space = false;
	size_t n_chars = 0, n_marks = 0, step;

	for (; *text; text += step) {
		size_t room = max_chars ? max_chars - n_chars : SIZE_MAX;
		uint32_t c;

		step = room > wants_space ? n_printable(text, room - wants_space) : 0;
		if (step) {
			if (wants_space)
				buf_append_char(&out, ' ');
			buf_append(&out, text, step);
			n_chars += wants_space + step;
			n_marks = 0;
			wants_space = false;
			continue;
		}
		step = utf8_decode(text, &c);
		if (is_blank_character(c)) {
			wants_space = out.len > 0;
			continue;
		}
		n_marks = is_mark(c) ? n_marks + 1 : 0;
		/* U+FE00 to U+FE0F only choose between two drawings of a character. */
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
	return out.data ? buf_detach(&out) : xstrdup("");
}

void escape_line(struct buf *out, const char *text, size_t max_chars)
{
	char *line = clean_text(text, max_chars);

	buf_append_str(out, line);
	free(line);
}

enum entity_place { IN_HTML = 1, IN_XML_TEXT = 2, IN_XML_VALUE = 4, IN_ALL = 7 };

/* NULL: the character stays as it is in this place. */
static const char *entity_of(char c, enum entity_place place)
{
	static const struct {
		char c;
		int places;
		const char *text;
	} list[] = {{'&', IN_ALL, "&amp;"}, {'<', IN_ALL, "&lt;"}, {'>', IN_ALL, "&gt;"}, /* no "]]>" in XML */
	    {'"', IN_HTML | IN_XML_VALUE, "&quot;"}, {'\'', IN_HTML, "&#39;"}, {'\n', IN_XML_VALUE, "&#10;"},
	    {'\t', IN_XML_VALUE, "&#9;"}, {'\r', IN_XML_TEXT | IN_XML_VALUE, "&#13;"}};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i].c == c && list[i].places & place)
			return list[i].text;
	return NULL;
}

void escape_html(struct buf *out, const char *text)
{
	char *line = clean_text(text, 0);

	for (const char *p = line; *p; p++) {
		const char *entity = entity_of(*p, IN_HTML);

		buf_append(out, entity ? entity : p, entity ? strlen(entity) : 1);
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

/* True for text that is neither Markdown nor a reference of GitHub's: it starts with a letter (not a list), has dots
 * only inside numbers (not www. or a host name), and contains neither "ABC-12" (GH-1 and custom references) nor a
 * commit. */
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

/* The length of host[:port]; 0: neither a name nor an IPv4 or bracketed IPv6 address. */
static size_t authority_length(const char *s)
{
	static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	size_t n;

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
		size_t n_port = strspn(s + n + 1, "0123456789");
		if (n_port == 0 || n_port > 5)
			return 0;
		n += 1 + n_port;
	}
	return s[n] == '\0' || strchr("/?#", s[n]) ? n : 0;
}

bool escape_url(struct buf *out, const char *url, size_t max_bytes, enum url_rule rule)
{
	size_t n_scheme;

	if (str_has_prefix(url, "https://"))
		n_scheme = strlen("https://");
	else if (rule == URL_HTTPS_OR_HTTP && str_has_prefix(url, "http://"))
		n_scheme = strlen("http://");
	else
		return false;
	size_t n_authority = authority_length(url + n_scheme);
	if (n_authority == 0 || strlen(url) > max_bytes)
		return false;
	buf_append(out, url, n_scheme + n_authority);
	for (const char *s = url + n_scheme + n_authority; *s; s++) {
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

/* XML can contain neither most control characters nor U+FFFE and U+FFFF. */
static bool is_xml_character(uint32_t c)
{
	return c >= 0x20 ? c != 0xFFFE && c != 0xFFFF : c == '\t' || c == '\n' || c == '\r';
}

/* In every place, so that most texts are copied at once. */
static bool is_plain_in_xml(char c)
{
	return c >= ' ' && c < 0x7F && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'';
}

static void append_xml(struct buf *out, const char *s, enum entity_place place)
{
	while (*s) {
		uint32_t c;
		size_t n = 0;
		const char *entity;

		while (is_plain_in_xml(s[n]))
			n++;
		buf_append(out, s, n);
		s += n;
		if (!*s)
			break;
		n = utf8_decode(s, &c);
		entity = entity_of(*s, place);
		if (c == 0xFFFD || !is_xml_character(c))
			buf_append_str(out, REPLACEMENT);
		else if (entity)
			buf_append_str(out, entity);
		else
			buf_append(out, s, n);
		s += n;
	}
}

void escape_xml_text(struct buf *out, const char *text) { append_xml(out, text, IN_XML_TEXT); }

void escape_xml_attribute(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	buf_appendf(out, " %s=\"", name);
	append_xml(out, value, IN_XML_VALUE);
	buf_append_char(out, '"');
}
