#include "web/params.h"

#include "web/web_internal.h"

enum { NUMBER_BYTES = 24, WORDS_BYTES = 200, DAY_BYTES = 11 };

void params_wrong(struct params *p, const char *name, const char *why)
{
	if (!p->wrong[0])
		snprintf(p->wrong, sizeof(p->wrong), "%s: %s", name, why);
}

static bool read_param(struct params *p, const char *name, char *out, size_t out_bytes)
{
	int rc = http_query_nth(p->r, name, 0, out, out_bytes);

	if (rc == ERR_INVALID)
		params_wrong(p, name, "is too long, or its percent-encoding is wrong");
	return rc == 0;
}

int64_t params_int(struct params *p, const char *name, int64_t min, int64_t max, int64_t fallback)
{
	char text[NUMBER_BYTES], why[100];
	int64_t v;

	if (!read_param(p, name, text, sizeof(text)))
		return fallback;
	if (parse_int64(text, &v) == 0 && v >= min && v <= max)
		return v;
	snprintf(why, sizeof(why), "must be a whole number from %lld to %lld", (long long)min, (long long)max);
	params_wrong(p, name, why);
	return fallback;
}

int64_t params_limit(struct params *p, int64_t fallback)
{
	int64_t of_page = web_page_limit(p->r);

	return params_int(p, "limit", 1, PARAMS_LIMIT_MAX, of_page ? of_page : fallback);
}

static int find_word(const struct words *words, const char *text, size_t n)
{
	for (int i = 0; i < words->n; i++)
		if (strlen(words->names[i]) == n && memcmp(words->names[i], text, n) == 0)
			return i;
	return -1;
}

static void wrong_word(struct params *p, const char *name, const struct words *words)
{
	struct buf why = BUF_INIT(sizeof(p->wrong));

	buf_append_str(&why, "must be one of");
	for (int i = 0; i < words->n; i++)
		buf_appendf(&why, "%s %s", i ? "," : "", words->names[i]);
	params_wrong(p, name, buf_str(&why));
	buf_release(&why);
}

int params_word(struct params *p, const char *name, const struct words *words, int fallback)
{
	char text[WORDS_BYTES];

	if (!read_param(p, name, text, sizeof(text)))
		return fallback;
	int i = find_word(words, text, strlen(text));
	if (i >= 0)
		return i;
	wrong_word(p, name, words);
	return fallback;
}

unsigned params_words(struct params *p, const char *name, const struct words *words)
{
	char text[WORDS_BYTES], *rest = text, *word;
	unsigned bits = 0;

	if (!read_param(p, name, text, sizeof(text)))
		return 0;
	while ((word = strsep(&rest, ",")) != NULL) {
		int i = find_word(words, word, strlen(word));

		if (i < 0) {
			wrong_word(p, name, words);
			return 0;
		}
		bits |= 1U << i;
	}
	return bits;
}

const char *params_text(struct params *p, const char *name, char *out, size_t out_bytes)
{
	bool is_read = read_param(p, name, out, out_bytes);

	if (is_read && !utf8_is_valid(out, strlen(out)))
		params_wrong(p, name, "must be UTF-8");
	if (!is_read || p->wrong[0])
		out[0] = '\0';
	return *out ? out : NULL;
}

int64_t params_day(struct params *p, const char *name, int64_t fallback_ms)
{
	char text[DAY_BYTES], time[RFC3339_BYTES];
	int64_t ms;

	if (!read_param(p, name, text, sizeof(text)))
		return fallback_ms;
	snprintf(time, sizeof(time), "%sT00:00:00Z", text);
	if (rfc3339_parse(time, &ms) == 0 && ms >= 0)
		return ms;
	params_wrong(p, name, "must be a day, YYYY-MM-DD");
	return fallback_ms;
}

size_t params_cursor(struct params *p, char *out, size_t out_bytes)
{
	struct buf bytes = BUF_INIT(CURSOR_BYTES);
	char text[CURSOR_BYTES];
	size_t n = 0;

	out[0] = '\0';
	if (!read_param(p, "cursor", text, sizeof(text)))
		return 0;
	if (base64url_decode(text, strlen(text), &bytes) || bytes.len == 0 || bytes.len >= out_bytes) {
		params_wrong(p, "cursor", WRONG_CURSOR);
	} else {
		n = bytes.len;
		memcpy(out, bytes.data, n);
		out[n] = '\0';
	}
	buf_release(&bytes);
	return n;
}

bool params_refuse(struct params *p)
{
	if (!p->wrong[0])
		return false;
	web_respond_error(p->r, 400, p->wrong);
	return true;
}

bool params_refuse_read(struct params *p, void *read)
{
	bool is_refused = params_refuse(p);

	if (is_refused)
		web_read_free(read);
	return is_refused;
}
