/* A report file, read for `report validate` and `report push`. */
#ifndef CTL_REPORT_INPUT_H
#define CTL_REPORT_INPUT_H

#include "base/buf.h"
#include "ctl/command.h"
#include "report/report_file.h"

struct report_input {
	struct buf text;
	enum report_format format;
	struct report_file report;
	struct error why; /* "FILE: line 12: …" */
};

/* wanted: N_REPORT_FORMATS to have it guessed. 0, or a code with `why` set; release in any
 * case. */
int report_input_read(struct report_input *in, const char *path, enum report_format wanted);
void report_input_release(struct report_input *in);

/* What is valid but hardly meant: calls tell() with one sentence each. */
void report_hints(
    const struct report_input *in, void (*tell)(const char *hint, void *owner), void *owner);

#endif
