/* What was tested of a platform: for each version of PyTorch and system the newest run, and how the
 * must-pass tests of the registry (vendor's and PyTorch's) came out. Taken from reports, never typed
 * in. */
#ifndef MODEL_PLATFORM_TEST_H
#define MODEL_PLATFORM_TEST_H

#include "model/platform.h"

struct platform_test {
	char *accelerator;
	enum platform_build build;
	char *torch; /* as reported: "2.9.1+cpu", "2.10.0a0+gitabc" */
	char *os;    /* as reported: "Ubuntu 22.04"; "" when the report does not say */
	char *head_sha;
	char *extension_version; /* NULL: not reported */
	int64_t job_id;          /* 0: retention took it */
	int64_t at_ms;           /* when it was reported */
	int64_t red_since_ms; /* the first of the red runs without a green one between; 0: green */
	int64_t n_passed, n_failed,
	    n_missing; /* must-pass tests; missing: skipped or not reported */
};

/* GREEN takes at least one must-pass test: where nothing is demanded nothing is shown. */
enum platform_result { PLATFORM_UNJUDGED, PLATFORM_GREEN, PLATFORM_RED };
enum platform_result platform_test_result(const struct platform_test *t);
void platform_test_release(struct platform_test *t);

#endif
