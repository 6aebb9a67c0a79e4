/* What the compute-platforms page says about one accelerator: how its machines are prepared, how
 * PyTorch is installed for it, how one begins, where help is. Written by the vendor, checked when
 * it is read (config/platform_file.h), and shown as text only. What was tested is not in here: that
 * is never typed in (model/platform_test.h).
 *
 * Plain data; filled once, then nobody changes it. */
#ifndef MODEL_PLATFORM_H
#define MODEL_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum platform_integration { PLATFORM_IN_TREE, PLATFORM_OUT_OF_TREE };

/* Selectors show each of these in the order it has here. */
enum platform_build { BUILD_STABLE, BUILD_NIGHTLY, N_PLATFORM_BUILDS };
enum platform_os { OS_LINUX, OS_MACOS, OS_WINDOWS, N_PLATFORM_OSES };
enum platform_package {
	PACKAGE_PIP,
	PACKAGE_CONDA,
	PACKAGE_LIBTORCH,
	PACKAGE_DOCKER,
	PACKAGE_SOURCE,
	N_PLATFORM_PACKAGES,
};
enum platform_language { LANGUAGE_PYTHON, LANGUAGE_CPP, N_PLATFORM_LANGUAGES };

/* One way to install, and no two with the same first six. A file may give lists for some of
 * them; here each combination is an entry of its own. */
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
	char *device; /* what torch.device() takes: "npu" */
	char *summary;
	bool is_example;    /* not everything in it was verified; such ones stand last */
	int64_t max_age_ms; /* a test result that is older is stale */
	/* The package that comes on top of PyTorch; extension_package NULL: there is none. */
	char *extension_package, *extension_import, *extension_url; /* import, url: may be NULL */
	bool is_autoloaded; /* through torch.backends' entry point: nothing has to be imported */
	char **versions;    /* of the compute platform, in the vendor's order; NULL-terminated */
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

/* A release is numbers between dots, with or without a local suffix: "2.9.1", "2.9.1+cpu".
 * Everything else that PyTorch calls its version is a nightly or somebody's own build. */
enum platform_build platform_build_of(const char *torch);
/* Is `torch`, a version as it is reported, this release? "2.9.1+cpu" is "2.9.1". */
bool platform_is_release(const char *torch, const char *release);
/* Which system a report's `environment.os` names: "Ubuntu 22.04" is Linux. N_PLATFORM_OSES: none
 * of them, or nobody can tell. */
enum platform_os platform_os_of(const char *os);

/* Everything in it as bytes of text: what an answer that shows it is bounded by. */
size_t platform_text_bytes(const struct platform *p);
/* The same six? Build, release, system, package, version and language. */
bool platform_install_is_same(const struct platform_install *a, const struct platform_install *b);
void platform_install_release(struct platform_install *i);
void platform_step_release(struct platform_step *s);
void platform_link_release(struct platform_link *l);
void platform_free(struct platform *p); /* NULL is fine */

#endif
