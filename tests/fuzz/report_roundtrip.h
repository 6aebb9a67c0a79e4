/* The contract of every report parser: accepted content is bounded and clean, and does not change when it is written
 * and read again. */
#pragma once

#include "documents/report_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void check_text(const char *s, size_t max, bool is_line)
{
	if (!s)
		return;
	assert(*s && strlen(s) <= max && utf8_is_valid(s, strlen(s)));
	for (; *s; s++)
		assert((unsigned char)*s >= 0x20 || (!is_line && (*s == '\n' || *s == '\t')));
}

static inline void check_case(const struct test_result *t)
{
	assert(t->suite && t->name && t->status < N_TEST_STATUSES && t->duration_ms >= -1);
	check_text(t->suite, REPORT_SUITE_MAX_BYTES, true);
	check_text(t->name, REPORT_NAME_MAX_BYTES, true);
	check_text(t->message, REPORT_MESSAGE_MAX_BYTES, true);
	check_text(t->trace, REPORT_TRACE_MAX_BYTES, false);
	check_text(t->dtype, REPORT_UNIT_MAX_BYTES, true);
	check_text(t->unit, REPORT_UNIT_MAX_BYTES, true);
	check_text(t->log_url, REPORT_URL_MAX_BYTES, true);
	check_text(t->file, REPORT_PATH_MAX_BYTES, true);
	assert(!t->file || (test_status_is_red(t->status) && t->file[0] != '/'));
	assert(t->line >= 0 && t->line <= REPORT_LINE_MAX && (t->file || !t->line));
}

static inline void check_report(enum report_format f, const uint8_t *data, size_t n)
{
	char *text = xmemdup(data, n), *written, *again;
	struct report_file r, copy;
	struct error why = {0};
	size_t n_written, n_again;
	int rc = report_file_parse(f, text, n, &r, &why);

	(void)report_format_guess(text, n);
	free(text);
	if (rc) {
		assert(why.text[0]);
		report_file_release(&r);
		return;
	}
	assert(r.n_tests > 0 && r.n_tests <= REPORT_TESTS_MAX);
	for (size_t i = 0; i < r.n_tests; i++)
		check_case(&r.tests[i]);
	written = report_file_text(&r, &n_written);
	assert(report_format_guess(written, n_written) == REPORT_OUTPOST);
	rc = report_file_parse(REPORT_OUTPOST, written, n_written, &copy, &why);
	assert(!rc && copy.n_tests == r.n_tests && copy.n_cut == r.n_cut);
	again = report_file_text(&copy, &n_again);
	assert(n_written == n_again && memcmp(written, again, n_again) == 0);
	free(written);
	free(again);
	report_file_release(&copy);
	report_file_release(&r);
}
