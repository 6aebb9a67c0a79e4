#include "model/platform.h"

const char *platform_integration_name(enum platform_integration i)
{
	return i == PLATFORM_IN_TREE ? "in-tree" : "out-of-tree";
}

const char *platform_build_name(enum platform_build b) { return b == BUILD_STABLE ? "stable" : "nightly"; }

const char *platform_os_name(enum platform_os o)
{
	static const char *const names[N_PLATFORM_OSES] = {"linux", "macos", "windows"};

	return names[o];
}

const char *platform_package_name(enum platform_package p)
{
	static const char *const names[N_PLATFORM_PACKAGES] = {"pip", "conda", "libtorch", "docker", "source"};

	return names[p];
}

const char *platform_language_name(enum platform_language l) { return l == LANGUAGE_PYTHON ? "python" : "cpp"; }

/* The length of "2.9.1" at the start of s; 0: s does not start with such a number. */
static size_t release_bytes(const char *s)
{
	size_t n = 0, n_parts = 0;

	while (isdigit((unsigned char)s[n])) {
		n += strspn(s + n, "0123456789");
		n_parts++;
		if (s[n] != '.' || !isdigit((unsigned char)s[n + 1]))
			break;
		n++;
	}
	return n_parts > 1 ? n : 0;
}

enum platform_build platform_build_of(const char *torch)
{
	size_t n = release_bytes(torch);

	return n && (torch[n] == '\0' || torch[n] == '+') ? BUILD_STABLE : BUILD_NIGHTLY;
}

bool platform_is_release(const char *torch, const char *release)
{
	size_t n = release_bytes(torch);

	return platform_build_of(torch) == BUILD_STABLE && n == strlen(release) && strncmp(torch, release, n) == 0;
}

/* Whether a word of s begins with this one: "red hat" in "Red Hat", but not "linux" in "notlinux". */
static bool has_word(const char *s, const char *word)
{
	for (const char *at = s; (at = strcasestr(at, word)); at++)
		if (at == s || !isalpha((unsigned char)at[-1]))
			return true;
	return false;
}

enum platform_os platform_os_of(const char *os)
{
	static const struct {
		const char *word;
		enum platform_os os;
	} words[] = {{"windows", OS_WINDOWS}, {"win32", OS_WINDOWS}, {"macos", OS_MACOS}, {"mac os", OS_MACOS},
	    {"darwin", OS_MACOS}, {"linux", OS_LINUX}, {"ubuntu", OS_LINUX}, {"debian", OS_LINUX}, {"centos", OS_LINUX},
	    {"rhel", OS_LINUX}, {"red hat", OS_LINUX}, {"rocky", OS_LINUX}, {"alma", OS_LINUX}, {"fedora", OS_LINUX},
	    {"suse", OS_LINUX}, {"opensuse", OS_LINUX}, {"sles", OS_LINUX}, {"openeuler", OS_LINUX},
	    {"euleros", OS_LINUX}, {"opencloudos", OS_LINUX}, {"tencentos", OS_LINUX}, {"anolis", OS_LINUX},
	    {"kylin", OS_LINUX}, {"alpine", OS_LINUX}, {"manylinux", OS_LINUX}, {"almalinux", OS_LINUX},
	    {"archlinux", OS_LINUX}};

	for (size_t i = 0; os && i < ARRAY_LEN(words); i++)
		if (has_word(os, words[i].word))
			return words[i].os;
	return N_PLATFORM_OSES;
}

static size_t text_bytes(const char *s) { return s ? strlen(s) : 0; }

static size_t texts_bytes(char *const *v)
{
	size_t n = 0;

	for (; v && *v; v++)
		n += strlen(*v);
	return n;
}

size_t platform_text_bytes(const struct platform *p)
{
	size_t n = text_bytes(p->device) + text_bytes(p->summary) + text_bytes(p->extension_package) +
		   text_bytes(p->extension_import) + text_bytes(p->extension_url) + texts_bytes(p->versions) +
		   text_bytes(p->start_text) + text_bytes(p->start_code);

	for (size_t i = 0; i < p->n_installs; i++)
		n += text_bytes(p->installs[i].torch) + text_bytes(p->installs[i].version) +
		     texts_bytes(p->installs[i].commands) + text_bytes(p->installs[i].note);
	for (size_t i = 0; i < p->n_steps; i++)
		n += text_bytes(p->steps[i].title) + text_bytes(p->steps[i].text) + texts_bytes(p->steps[i].commands) +
		     text_bytes(p->steps[i].url);
	for (size_t i = 0; i < p->n_help; i++)
		n += text_bytes(p->help[i].title) + text_bytes(p->help[i].url);
	return n;
}

bool platform_install_is_same(const struct platform_install *a, const struct platform_install *b)
{
	return a->build == b->build && str_eq(a->torch, b->torch) && a->os == b->os && a->package == b->package &&
	       str_eq(a->version, b->version) && a->language == b->language;
}

void platform_install_release(struct platform_install *i)
{
	FREE_ALL(i->torch, i->version, i->note);
	strv_free(i->commands);
	*i = (struct platform_install){0};
}

void platform_step_release(struct platform_step *s)
{
	FREE_ALL(s->title, s->text, s->url);
	strv_free(s->commands);
	*s = (struct platform_step){0};
}

void platform_link_release(struct platform_link *l)
{
	FREE_ALL(l->title, l->url);
	*l = (struct platform_link){0};
}

void platform_free(struct platform *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_installs; i++)
		platform_install_release(&p->installs[i]);
	for (size_t i = 0; i < p->n_steps; i++)
		platform_step_release(&p->steps[i]);
	for (size_t i = 0; i < p->n_help; i++)
		platform_link_release(&p->help[i]);
	FREE_ALL(p->installs, p->steps, p->help, p->device, p->summary, p->extension_package, p->extension_import,
	    p->extension_url);
	strv_free(p->versions);
	FREE_ALL(p->start_text, p->start_code, p);
}

/* ---- the tests of a platform ---- */

RECORD_DEFINE(platform_test, PLATFORM_TEST_RECORD)
RECORD_DEFINE_PART(platform_must_pass, platform_test, PLATFORM_MUST_PASS_RECORD)

enum platform_result platform_test_result(const struct platform_test *t)
{
	if (t->n_failed || t->n_missing)
		return PLATFORM_RED;
	return t->n_passed ? PLATFORM_GREEN : PLATFORM_UNJUDGED;
}
