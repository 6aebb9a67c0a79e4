/* The three readers behind report_file_parse(). Private to report/. The text is not empty and
 * within REPORT_FILE_MAX_BYTES; *ret is zero. A failure may leave half of it to be released. */
#ifndef REPORT_REPORT_PARSE_H
#define REPORT_REPORT_PARSE_H

#include "report/report_file.h"

int junit_parse(const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
int ctrf_parse(const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
int outpost_report_parse(
    const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;

enum { ENVIRONMENT_MAX_BYTES = 16 << 10 };
/* Checks the object as contract 6.1 has it and writes it down compactly. free() *ret. */
int environment_text(const json_t *environment, char **ret, struct error *e) MUST_CHECK;

#endif
