/* A file of its own although it is short, because every folder includes base/err.h. */

const char *err_name(int code)
{
	switch (code) {
	case ERR_OK:
		return "ERR_OK";
#define X(name, text)                                                                                                  \
	case ERR_##name:                                                                                               \
		return "ERR_" #name;
		ERR_CODES(X)
#undef X
	default:
		return "ERR_UNKNOWN";
	}
}

const char *err_text(int code)
{
	switch (code) {
	case ERR_OK:
		return "ok";
#define X(name, text)                                                                                                  \
	case ERR_##name:                                                                                               \
		return text;
		ERR_CODES(X)
#undef X
	default:
		return "unknown error";
	}
}

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->code)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}
