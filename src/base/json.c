enum { DEPTH_MAX = 64 };

static const char *digits_end(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start ? p : NULL;
}

/* RFC 8259 section 6. */
static const char *number_end(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	p = p < end && *p == '0' ? p + 1 : digits_end(p, end);
	if (p && p < end && *p == '.')
		p = digits_end(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = digits_end(p, end);
	}
	return p;
}

const char *json_scalar_end(const char *p, const char *end)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; p < end && *p >= 'a' && i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(end - p) >= n && memcmp(p, words[i], n) == 0)
			return p + n;
	}
	return number_end(p, end);
}

int json_parse(const char *p, size_t n, json_t **ret, struct error *e)
{
	json_error_t why;
	int depth = 0;
	bool in_string = false;

	*ret = NULL;
	/* jansson's own limit is 2048. Refuse hostile nesting before jansson recurses. */
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > DEPTH_MAX)
				return error_set(e, ERR_INVALID, "nested deeper than %d", DEPTH_MAX);
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	*ret = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return error_set(e, ERR_INVALID, "line %d: %s", why.line, why.text);
	return 0;
}

char *json_text(const json_t *v)
{
	char *s = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

	return s ? s : xstrdup("null");
}

char *json_text_of_strings(const char *const *v)
{
	if (!v)
		return NULL;
	json_t *list = json_array();
	for (; *v; v++)
		json_array_append_new(list, json_string(*v));
	char *text = json_text(list);
	json_decref(list);
	return text;
}

const char *json_get_str(const json_t *obj, const char *key) { return json_string_value(json_object_get(obj, key)); }

int64_t json_get_int(const json_t *obj, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool json_get_bool(const json_t *obj, const char *key, bool fallback)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

json_t *json_at(const json_t *obj, ...)
{
	json_t *v = NULL;
	const char *key;
	va_list ap;

	va_start(ap, obj);
	while ((key = va_arg(ap, const char *)) != NULL) {
		v = json_object_get(obj, key);
		obj = v;
	}
	va_end(ap);
	return v;
}

void json_set_str(json_t *obj, const char *key, const char *text)
{
	json_t *v = text ? json_string(text) : json_null();

	json_object_set_new(obj, key, v ? v : json_null());
}

json_t *json_foreign_text(const char *text)
{
	struct buf repaired = BUF_INIT(SIZE_MAX / 2);

	if (!text)
		return json_null();
	if (utf8_is_valid(text, strlen(text)))
		return json_string(text);
	for (const char *p = text; *p;) {
		size_t n = utf8_sequence_bytes(p, strnlen(p, 4));

		if (n)
			buf_append(&repaired, p, n);
		else
			buf_append_str(&repaired, "\xEF\xBF\xBD");
		p += n ? n : 1;
	}
	json_t *v = json_string(buf_str(&repaired));
	buf_release(&repaired);
	return v;
}

void json_set_foreign_text(json_t *obj, const char *key, const char *text)
{
	json_object_set_new(obj, key, json_foreign_text(text));
}

void json_set_int(json_t *obj, const char *key, int64_t value) { json_object_set_new(obj, key, json_integer(value)); }

json_t *json_time(int64_t wall_ms)
{
	char text[RFC3339_BYTES];

	return wall_ms ? json_string(rfc3339_format(wall_ms, text)) : json_null();
}

void json_set_time(json_t *obj, const char *key, int64_t wall_ms) { json_object_set_new(obj, key, json_time(wall_ms)); }

json_t *json_foreign_texts(char *const *list)
{
	json_t *v = json_array();

	for (; list && *list; list++)
		json_array_append_new(v, json_foreign_text(*list));
	return v;
}
