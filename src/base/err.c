/* A file of its own although it is short, because every folder includes base/err.h. */

#define CODE_NAME(name, text) "ERR_" #name,
#define CODE_TEXT(name, text) text,
/* By the code, which is negative or 0. */
static const char *const NAMES[] = {"ERR_OK", ERR_CODES(CODE_NAME)};
static const char *const TEXTS[] = {"ok", ERR_CODES(CODE_TEXT)};

static bool is_code(int code) { return code <= 0 && code > -(int)ARRAY_LEN(NAMES); }

const char *err_name(int code) { return is_code(code) ? NAMES[-code] : "ERR_UNKNOWN"; }

const char *err_text(int code) { return is_code(code) ? TEXTS[-code] : "unknown error"; }

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;
	char *last;

	if (!e || e->code)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	/* A text that was cut ends with a whole character. */
	last = e->text + strlen(e->text);
	while (last > e->text && ((unsigned char)*--last & 0xc0) == 0x80)
		continue;
	if (!utf8_sequence_bytes(last, strnlen(last, 4)))
		*last = '\0';
	return code;
}
