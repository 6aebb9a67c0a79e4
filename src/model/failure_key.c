/* A failure's key: the parts of its message and trace that count, without the name of the test. */

#include "model/failure_text.h"
#include "model/test_result.h"

enum {
	PARTS_MAX = 12,        /* of a test's name */
	PART_MIN_BYTES = 4,    /* shorter ones are words that a message may have by itself */
	CUT_MARGIN_BYTES = 64, /* a cut text may have lost control characters and blanks, too */
};

/* ---- the test's own name ---- */

struct part {
	const char *p;
	size_t n;
};
struct own_name {
	struct part parts[PARTS_MAX];
	size_t n;
};

/* The ends of the names of PyTorch's device-generic tests and their classes; a dtype is another one. */
static const char *const DEVICES[] = {"cpu", "cuda", "xpu", "npu", "hpu", "mps", "meta", "xla", "privateuse1",
    "privateuseone", "rocm", "hip", "mtia", "lazy", NULL};
static const char *const DTYPES[] = {
    "float", "bfloat", "complex", "int", "uint", "bool", "half", "double", "fp", "bf", NULL};

static bool is_variant(const char *p, size_t n)
{
	if (failure_is_listed(p, n, DEVICES))
		return true;
	while (n && failure_is_digit(p[n - 1]))
		n--;
	return failure_is_listed(p, n, DTYPES);
}

/* test_add_cuda_float32 → test_add; TestFooCUDA → TestFoo. */
static size_t stem(const char *p, size_t n)
{
	size_t from = n;

	while (from > 0) {
		while (from > 0 && p[from - 1] != '_')
			from--;
		if (from < 2 || !is_variant(p + from, n - from))
			break;
		n = --from;
	}
	for (const char *const *device = DEVICES; *device; device++) {
		size_t k = strlen(*device);

		if (n > k + PART_MIN_BYTES && p[0] == 'T' && strncasecmp(p + n - k, *device, k) == 0)
			return n - k;
	}
	return n;
}

/* A part that identifies a test, not a word like "add" or "model". */
static bool names_a_test(const char *p, size_t n)
{
	return n >= PART_MIN_BYTES && (strncasecmp(p, "test", 4) == 0 || memchr(p, '_', n) || failure_has_digit(p, n));
}

static void add_parts(struct own_name *o, const char *name)
{
	while (*name) {
		size_t n = failure_span(name, failure_is_word), kept = stem(name, n);

		if (n && o->n < PARTS_MAX && names_a_test(name, kept) && !is_variant(name, n))
			o->parts[o->n++] = (struct part){name, kept};
		if (name[n] == '[') /* its parameters are not part of the name */
			return;
		name += n ? n : 1;
	}
}

static bool is_own(const struct own_name *o, const char *p, size_t n)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct part *part = &o->parts[i];

		if (part->n <= n && memcmp(part->p, p, part->n) == 0 && (part->n == n || stem(p, n) == part->n))
			return true;
	}
	return false;
}

/* The end of a test's id that continues at p: "::name", ".name", "[parameters]". */
static const char *skip_rest_of_id(const char *p)
{
	for (;;) {
		size_t n = strncmp(p, "::", 2) == 0 ? 2 : *p == '.';

		if (*p == '[') {
			n = strcspn(p, "] ");
			if (p[n] != ']')
				return p;
			p += n + 1;
		} else if (n && failure_is_word(p[n])) {
			p += n;
			p += failure_span(p, failure_is_word);
		} else {
			return p;
		}
	}
}

/* The beginning of an id that continues after the text: at "folder/test_nn.py::TestNN::". */
static size_t before_id(const char *text, size_t len)
{
	if (!len || !strchr("./:", text[len - 1]) || (text[len - 1] == ':' && (len < 2 || text[len - 2] != ':')))
		return len;
	for (;;) {
		if (len && (failure_is_word(text[len - 1]) || strchr("./-", text[len - 1])))
			len--;
		else if (len > 1 && text[len - 1] == ':' && text[len - 2] == ':')
			len -= 2;
		else
			return len;
	}
}

char *failure_text_without_name(const char *text, const struct failure_text *t)
{
	struct own_name own = {.n = 0};
	char *out = xmalloc(strlen(text) + 1); /* a T replaces more than one byte */
	size_t len = 0;

	add_parts(&own, t->test);
	add_parts(&own, t->suite);
	while (*text) {
		size_t n = failure_span(text, failure_is_word);

		if (n && is_own(&own, text, n)) {
			len = before_id(out, len);
			out[len++] = 'T';
			text = skip_rest_of_id(text + n);
			continue;
		}
		n = n ? n : 1;
		memcpy(out + len, text, n);
		len += n;
		text += n;
	}
	out[len] = '\0';
	return out;
}

/* ---- the trace ---- */

static const char *skip_mark_of_pytest(const char *line)
{
	line += strspn(line, " \t");
	if (line[0] == 'E' && (line[1] == ' ' || line[1] == '\t'))
		line += 1 + strspn(line + 1, " \t");
	return line;
}

/* "torch._dynamo.exc.Unsupported: call_function", "KeyError" */
static bool is_exception(const char *line, size_t n)
{
	static const char *const ENDS[] = {"Error", "Exception", "Exit", "Failure", "Interrupt", "Unsupported"};
	size_t name = strcspn(line, ": ");

	if (name > n || !failure_is_word(line[0]) || (name < n && line[name] != ':'))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
		size_t k = strlen(ENDS[i]);

		if (name >= k && memcmp(line + name - k, ENDS[i], k) == 0)
			return true;
	}
	return false;
}

static size_t indent(const char *line) { return strspn(line, " \t"); }

/* `  File "/opt/torch/nn/functional.py", line 12, in relu`, and of pytest `torch/nn/functional.py:12: KeyError`. */
static bool is_frame(const char *text, size_t n)
{
	const char *py = memmem(text, n, ".py:", 4);

	return strncmp(text, "File \"", 6) == 0 ||
	       (py && failure_is_digit(py[4]) && !memchr(text, ' ', (size_t)(py - text)));
}

/* A harness adds more after the exception: another section, or another trace. */
static bool ends_exception(const char *text)
{
	static const char *const STARTS[] = {
	    "---", "===", "___", "Traceback (", "During handling of", "The above exception"};

	for (size_t i = 0; i < ARRAY_LEN(STARTS); i++)
		if (strncmp(text, STARTS[i], strlen(STARTS[i])) == 0)
			return true;
	return false;
}

/* The lines of an exception, without the frames among them and the source lines that follow these. */
static char *read_exception(const char *line)
{
	char *said = xmalloc(strlen(line) + 1);
	size_t len = 0, of_frame = 0;
	bool is_in_frame = false;

	while (line) {
		const char *text = skip_mark_of_pytest(line), *end = strchrnul(line, '\n');
		size_t n = (size_t)(end - text);

		if (len && ends_exception(text))
			break;
		if (is_frame(text, n)) {
			is_in_frame = true;
			of_frame = indent(line);
		} else if (n && (!is_in_frame || indent(line) <= of_frame)) {
			is_in_frame = false;
			if (len)
				said[len++] = '\n';
			memcpy(said + len, text, n);
			len += n;
		}
		line = *end ? end + 1 : NULL;
	}
	said[len] = '\0';
	return said;
}

char *failure_trace_exception(const char *trace)
{
	const char *found = NULL;

	for (const char *line = trace; line; line = strchr(line, '\n')) {
		const char *text = skip_mark_of_pytest(line += *line == '\n');
		size_t n = strcspn(text, "\n");

		if (n && is_exception(text, n))
			found = line;
	}
	return found ? read_exception(found) : NULL;
}

/* `  File "/opt/torch/nn/functional.py", line 12, in relu` (Python) and `torch/nn/functional.py:12: in relu` (pytest). */
static char *read_place(const char *line, size_t n)
{
	const char *end = line + n, *file = line, *file_end;

	if (strncmp(line, "File \"", 6) == 0) {
		file += 6;
		file_end = memchr(file, '"', (size_t)(end - file));
	} else {
		file_end = memmem(line, n, ".py:", 4);
		file_end = file_end && failure_is_digit(file_end[4]) ? file_end + 3 : NULL;
	}
	const char *function = memmem(line, n, " in ", 4);
	if (!file_end || !function || function < file_end)
		return NULL;
	for (const char *p = file; p < file_end; p++)
		if (*p == '/' || *p == '\\')
			file = p + 1;
	function += 4;
	return xasprintf("%.*s %.*s", (int)(file_end - file), file, (int)(end - function), function);
}

char *failure_trace_place(const char *trace, const struct failure_text *t)
{
	char *found = NULL;

	for (const char *line = trace; line; line = strchr(line, '\n')) {
		const char *text = skip_mark_of_pytest(line += *line == '\n');
		char *place = read_place(text, strcspn(text, "\n"));

		if (place) {
			free(found);
			found = place;
		}
	}
	if (!found)
		return NULL;
	char *stripped = failure_text_without_name(found, t);
	if (str_has_suffix(stripped, " T"))
		FREE_AND_NULL(stripped);
	free(found);
	return stripped;
}

/* ---- all of it ---- */

bool failure_marks_are_alike(const struct failure_mark *a, const struct failure_mark *b)
{
	return a->status == b->status && a->key && a->key == b->key;
}

bool failure_marks_are_same(const struct failure_mark *a, const struct failure_mark *b)
{
	return failure_marks_are_alike(a, b) && a->numbers == b->numbers && !a->is_cut && !b->is_cut;
}

static bool was_cut(const char *text, size_t max_bytes) { return text && strlen(text) >= max_bytes - CUT_MARGIN_BYTES; }

/* Normalises one part. Each part is normalised alone, because the message may end with words that hide the text after them. free(). */
static char *compared(const char *text, const struct failure_text *t, bool *is_cut)
{
	char *unnamed = failure_text_without_name(text ? text : "", t), *said = failure_text_normalise(unnamed);

	*is_cut |= strlen(said) + FAILURE_WORD_MAX_BYTES > FAILURE_TEXT_MAX_BYTES;
	free(unnamed);
	return said;
}

static bool compares(const char *p, size_t n)
{
	static const char *const WORDS[] = {"expected", "got", "actual", "received", "returned", "than", "is", "equal",
	    "equals", "be", "to", "assert", "wanted", NULL};

	if (failure_is_listed(p, n, WORDS))
		return true;
	return n >= 1 && n <= 2 && memchr("=!<>", *p, 4) && (n == 1 || p[1] == '=');
}

/* A whole number, and not part of a time, a fraction, an address or a share. */
static bool is_whole_number(const char *text, const char *p, size_t n)
{
	if (failure_span(p, failure_is_digit) != n || p[n] == '%' ||
	    ((p[n] == ':' || p[n] == '/') && failure_is_digit(p[n + 1])) || (p[n] == '.' && failure_is_digit(p[n + 1])))
		return false;
	return p == text || !strchr(".:/#", p[-1]) || p[-1] == '\0';
}

static const char *skip_to_operand(const char *p) { return p + strspn(p, " \t\n()[]{},'\"`:-"); }

static size_t span_of_operator(const char *p) { return strspn(p, "=!<>"); }

/* The whole numbers that a text compares, in their order: those beside a word or an operator that compares, and the
 * other numbers of a list that begins there. Two texts with different ones may be two failures. free(). */
static char *compared_numbers(const char *text)
{
	char *out = xmalloc(2 * strlen(text) + 1);
	size_t len = 0;
	bool is_operand = false;

	for (const char *p = skip_to_operand(text); *p; p = skip_to_operand(p)) {
		size_t n = failure_span(p, failure_is_word);

		n = n ? n : span_of_operator(p);
		if (failure_is_digit(*p)) {
			const char *next = skip_to_operand(p + n);

			is_operand |= span_of_operator(next) == 2;
			if (is_operand && is_whole_number(text, p, n)) {
				memcpy(out + len, p, n);
				len += n;
				out[len++] = ' ';
			}
		} else {
			is_operand = n && compares(p, n);
		}
		p += n ? n : 1;
	}
	out[len] = '\0';
	return out;
}

static int64_t hash(const char *said, const char *place)
{
	uint8_t digest[SHA256_BYTES];
	int64_t key;
	char *text = xasprintf("%s\n%s", said, place ? place : "");

	sha256(text, strlen(text), digest);
	memcpy(&key, digest, sizeof(key));
	free(text);
	return key ? key : 1;
}

struct failure_mark failure_mark(enum test_status status, const struct failure_text *t)
{
	struct failure_mark mark = {.status = status, .is_general = true};
	char *raised = failure_trace_exception(t->trace), *place = failure_trace_place(t->trace, t);
	bool is_cut = was_cut(t->message, REPORT_MESSAGE_MAX_BYTES) || was_cut(t->trace, REPORT_TRACE_MAX_BYTES);
	char *message = compared(t->message, t, &is_cut), *exception = compared(raised, t, &is_cut);
	char *said = xasprintf("%s%s%s", message, *message && *exception ? " " : "", exception);
	char *numbers = compared_numbers(t->message ? t->message : ""),
	     *raised_numbers = compared_numbers(raised ? raised : "");

	if (said[0]) {
		mark.key = hash(said, place);
		mark.numbers = hash(numbers, raised_numbers);
		mark.is_cut = is_cut;
		mark.is_general = is_cut || failure_text_is_general(said);
		mark.is_infrastructure =
		    failure_text_is_infrastructure(t->message) || failure_text_is_infrastructure(raised);
	}
	FREE_ALL(raised_numbers, numbers, said, exception, message, place, raised);
	return mark;
}

enum { MARK_IS_CUT = 1, MARK_IS_GENERAL = 2, MARK_IS_INFRASTRUCTURE = 4 };

void failure_mark_put(const struct failure_mark *m, uint8_t ret[FAILURE_MARK_BYTES])
{
	ret[0] = FAILURE_MARK_VERSION;
	ret[1] = (uint8_t)((m->is_cut ? MARK_IS_CUT : 0) | (m->is_general ? MARK_IS_GENERAL : 0) |
			   (m->is_infrastructure ? MARK_IS_INFRASTRUCTURE : 0));
	memcpy(ret + 2, &m->key, sizeof(m->key));
	memcpy(ret + 2 + sizeof(m->key), &m->numbers, sizeof(m->numbers));
}

bool failure_mark_get(const void *p, size_t n, enum test_status status, struct failure_mark *ret)
{
	const uint8_t *bytes = p;

	if (!p || n != FAILURE_MARK_BYTES || bytes[0] != FAILURE_MARK_VERSION)
		return false;
	*ret = (struct failure_mark){.status = status,
	    .is_cut = bytes[1] & MARK_IS_CUT,
	    .is_general = bytes[1] & MARK_IS_GENERAL,
	    .is_infrastructure = bytes[1] & MARK_IS_INFRASTRUCTURE};
	memcpy(&ret->key, bytes + 2, sizeof(ret->key));
	memcpy(&ret->numbers, bytes + 2 + sizeof(ret->key), sizeof(ret->numbers));
	return true;
}
