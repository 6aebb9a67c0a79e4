/* The content of the compute-platforms page for one accelerator: how to prepare a machine, how to install PyTorch, the
 * first steps, and where to get help. The vendor writes it, config/platform_file.h checks it, and pages show it as text
 * only. The outcome of the tests (struct platform_test) comes from reports, never from a file.
 *
 * Thread: any. Plain data and pure functions; a struct platform does not change after it was filled in. Owns: each
 * struct owns its texts; platform_free(), record_release(). */
#pragma once

#include "model/record.h"

enum platform_integration { PLATFORM_IN_TREE, PLATFORM_OUT_OF_TREE };

/* Selectors show the values in this order. */
enum platform_build { BUILD_STABLE, BUILD_NIGHTLY, N_PLATFORM_BUILDS };
enum platform_os { OS_LINUX, OS_MACOS, OS_WINDOWS, N_PLATFORM_OSES };
enum platform_package {
	PACKAGE_PIP,
	PACKAGE_CONDA,
	PACKAGE_LIBTORCH,
	PACKAGE_DOCKER,
	PACKAGE_SOURCE,
	N_PLATFORM_PACKAGES
};
enum platform_language { LANGUAGE_PYTHON, LANGUAGE_CPP, N_PLATFORM_LANGUAGES };

/* One way to install; no two have the same first six members. A file may give lists for some of them, and each
 * combination is one entry here. */
struct platform_install {
	enum platform_build build;
	char *torch; /* stable: the release, "2.9.1"; nightly: NULL */
	enum platform_os os;
	enum platform_package package;
	char *version; /* of the compute platform, "CUDA 12.8"; NULL: it has none */
	enum platform_language language;
	char **commands; /* one line each, at least one; NULL-terminated */
	char *note;      /* may be NULL */
};

struct platform_step { /* preparing the machine */
	char *title;
	char *text;      /* several lines; may be NULL */
	char **commands; /* NULL-terminated, never NULL */
	char *url;       /* https or NULL */
};

struct platform_link {
	char *title, *url; /* https */
};

struct platform {
	enum platform_integration integration;
	char *device; /* for torch.device(): "npu" */
	char *summary;
	bool is_example;    /* not everything in it was verified; the page shows it last */
	int64_t max_age_ms; /* a test result that is older is stale */
	/* The package in addition to PyTorch; extension_package NULL: there is none. */
	char *extension_package, *extension_import, *extension_url; /* import, url: may be NULL */
	bool is_autoloaded;                /* through torch.backends' entry point: nothing has to be imported */
	char **versions;                   /* of the compute platform, in the vendor's order; NULL-terminated */
	struct platform_install *installs; /* in the vendor's order, at least one */
	size_t n_installs;
	struct platform_step *steps;
	size_t n_steps;
	char *start_text, *start_code; /* either may be NULL */
	struct platform_link *help;
	size_t n_help;
};

const char *platform_integration_name(enum platform_integration i); /* as written in a file */
const char *platform_build_name(enum platform_build b);
const char *platform_os_name(enum platform_os o);
const char *platform_package_name(enum platform_package p);
const char *platform_language_name(enum platform_language l);

/* A release is numbers between dots, with or without a local suffix: "2.9.1", "2.9.1+cpu". Any other version is a
 * nightly or a private build. */
enum platform_build platform_build_of(const char *torch);
/* Whether the reported version `torch` is this release: "2.9.1+cpu" is "2.9.1". */
bool platform_is_release(const char *torch, const char *release);
/* The system of a report's `environment.os`: "Ubuntu 22.04" is Linux. N_PLATFORM_OSES: another one, or not known. */
enum platform_os platform_os_of(const char *os);

/* The bytes of all its texts, which bound an answer that shows it. */
size_t platform_text_bytes(const struct platform *p);
/* Whether both have the same build, release, system, package, version and language. */
bool platform_install_is_same(const struct platform_install *a, const struct platform_install *b);
void platform_install_release(struct platform_install *i);
void platform_step_release(struct platform_step *s);
void platform_link_release(struct platform_link *l);
void platform_free(struct platform *p); /* NULL is fine */

/* ---- the tests of a platform: the newest run for each version of PyTorch and each system, and the outcome of the
 * must-pass tests of the registry (the vendor's and PyTorch's) ---- */

/* The table `platform_test`. `torch`: as reported, "2.9.1+cpu" or "2.10.0a0+gitabc". `os`: as reported, "Ubuntu 22.04",
 * or "" when the report does not have it. `job_id` 0: retention removed it. `at_ms`: when it was reported.
 * `red_since_ms`: the first of the red runs since the last green one; 0: green. */
#define PLATFORM_TEST_RECORD(F, S)                                                                                     \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TEXT, torch, "torch", "torch", "")                                                                        \
	F(S, TEXT, os, NULL, "os", "")                                                                                 \
	F(S, COMMIT, head_sha, "head_sha", "head_sha", "")                                                             \
	F(S, TEXT, extension_version, "extension_version", "extension_version", "")                                    \
	F(S, ID, job_id, "job", "job_id", "")                                                                          \
	F(S, TIME, at_ms, "at", "at_ms", "")                                                                           \
	F(S, TIME, red_since_ms, "red_since", "red_since_ms", "")
/* Its must-pass tests. `n_missing`: skipped or not reported. */
#define PLATFORM_MUST_PASS_RECORD(F, S)                                                                                \
	F(S, INT, n_passed, "passed", "n_passed", "")                                                                  \
	F(S, INT, n_failed, "failed", "n_failed", "")                                                                  \
	F(S, INT, n_missing, "missing", "n_missing", "")
struct platform_test {
	enum platform_build build; /* follows from `torch` */
	RECORD_MEMBERS(PLATFORM_TEST_RECORD)
	RECORD_MEMBERS(PLATFORM_MUST_PASS_RECORD)
};
RECORD_DECLARE(platform_test);
RECORD_DECLARE(platform_must_pass);

/* GREEN needs at least one must-pass test; without one the result is UNJUDGED. */
enum platform_result { PLATFORM_UNJUDGED, PLATFORM_GREEN, PLATFORM_RED };
enum platform_result platform_test_result(const struct platform_test *t);
