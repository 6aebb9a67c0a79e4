/* Any message and trace of a test of any name, one a line: the text by which they are compared is bounded, is one
 * line, and does not change when it is normalised again. */

#include "model/failure_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_normal(const char *text, size_t n)
{
	char *once = failure_text_normalise(text), *twice = failure_text_normalise(once);

	assert(strlen(once) <= 4096);
	assert(strcmp(once, twice) == 0);
	for (const char *p = once; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 0x7f);
	if (utf8_is_valid(text, n))
		assert(utf8_is_valid(once, strlen(once)));
	free(twice);
	free(once);
}

/* The name of the test is its first line, the message its second, the trace the rest. */
static void check_mark(const char *text)
{
	size_t name_bytes = strcspn(text, "\n");
	const char *message = text + name_bytes + (text[name_bytes] == '\n');
	size_t message_bytes = strcspn(message, "\n");
	const char *trace = message + message_bytes + (message[message_bytes] == '\n');
	struct failure_text t = {.suite = "unit", .dtype = "", .trace = trace};
	char *name = xstrndup(text, name_bytes), *said = xstrndup(message, message_bytes), *rest;
	struct failure_mark a, b;

	t.test = name;
	t.message = said;
	rest = failure_text_without_name(said, &t);
	a = failure_mark(TEST_FAIL, &t);
	b = failure_mark(TEST_FAIL, &t);
	assert(strlen(rest) <= message_bytes);
	assert(a.key == b.key);
	assert(a.key || a.is_general);
	free(rest);
	free(said);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text;

	if (n > 4096 || memchr(data, 0, n))
		return 0;
	text = xstrndup((const char *)data, n);
	check_normal(text, n);
	check_mark(text);
	free(text);
	return 0;
}
