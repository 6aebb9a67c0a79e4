/* Checks the keys of a `platform:` block against each other, and expands the lists of `install`. */

#include "config/platform_file.h"

struct expansion {
	struct reader *r;
	struct platform_draft *d;
	int lines[PLATFORM_COMBINATIONS_MAX]; /* of each in d->p.installs */
	bool is_full;
};

/* Takes over the content of `one`. */
static void add_install(struct expansion *x, struct platform_install *one, int line)
{
	struct platform *p = &x->d->p;

	if (x->is_full || p->n_installs == PLATFORM_COMBINATIONS_MAX) {
		if (!x->is_full)
			refuse_at(x->r, line, "platform.install comes to more than %d combinations",
			    PLATFORM_COMBINATIONS_MAX);
		x->is_full = true;
		platform_install_release(one);
		return;
	}
	for (size_t i = 0; i < p->n_installs; i++)
		if (platform_install_is_same(&p->installs[i], one)) {
			int first = x->lines[i];

			refuse_at(x->r, line,
			    "platform.install has %s%s%s, %s, %s%s%s, %s twice; the first is in line %d",
			    platform_build_name(one->build), one->torch ? " " : "", one->torch ? one->torch : "",
			    platform_os_name(one->os), platform_package_name(one->package), one->version ? ", " : "",
			    one->version ? one->version : "", platform_language_name(one->language), first);
			platform_install_release(one);
			return;
		}
	x->lines[p->n_installs] = line;
	p->installs[p->n_installs++] = *one;
}

/* Expands one entry for one system and package. An entry without a version applies to each version. */
static void add_installs(
    struct expansion *x, const struct install_draft *from, enum platform_os os, enum platform_package package)
{
	char **version = from->versions ? from->versions : x->d->p.versions;
	unsigned languages = from->languages;

	if (!languages)
		languages = 1U << (package == PACKAGE_LIBTORCH ? LANGUAGE_CPP : LANGUAGE_PYTHON);
	do {
		for (int l = 0; l < N_PLATFORM_LANGUAGES; l++) {
			struct platform_install one = {
			    .build = (enum platform_build)from->build,
			    .os = os,
			    .package = package,
			    .language = (enum platform_language)l,
			};

			if (!(languages & 1U << l))
				continue;
			if (package == PACKAGE_LIBTORCH && l == LANGUAGE_PYTHON) {
				refuse_at(
				    x->r, from->line, "platform.install: libtorch is for C++: language must be cpp");
				continue;
			}
			one.torch = xstrdup_or_null(from->torch);
			one.version = xstrdup_or_null(*version);
			one.commands = strv_copy((const char *const *)from->commands);
			one.note = xstrdup_or_null(from->note);
			add_install(x, &one, from->line);
		}
	} while (*version && *++version);
}

void platform_expand(struct reader *r, struct platform_draft *d)
{
	struct expansion x = {.r = r, .d = d};
	bool is_given = d->p.versions[0] != NULL;

	/* Without `versions`, the entries define the versions. */
	for (size_t i = 0; i < d->n_installs; i++)
		for (char **v = d->installs[i].versions; v && *v; v++) {
			const char *const *known = (const char *const *)d->p.versions;

			if (strv_contains(known, *v))
				continue;
			if (!is_given) {
				strv_add(&d->p.versions, *v);
				continue;
			}
			const char *near = str_nearest(*v, known);
			refuse_at(r, d->installs[i].line,
			    "platform.install.platform must be one of platform.versions, not %s%s%s%s", QUOTED(*v),
			    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		}
	d->p.installs = xcalloc(PLATFORM_COMBINATIONS_MAX, sizeof(*d->p.installs));
	for (size_t i = 0; i < d->n_installs; i++) {
		const struct install_draft *from = &d->installs[i];

		if (from->build == BUILD_STABLE && !from->torch)
			refuse_at(r, from->line,
			    "platform.install: a stable build names its release of PyTorch, as torch: \"2.9.1\"");
		if (from->build == BUILD_NIGHTLY && from->torch)
			refuse_at(r, from->line,
			    "platform.install.torch goes with build: stable; a nightly is always the newest");
		if (!from->is_right)
			continue; /* already reported, and its combinations are unknown */
		for (int os = 0; os < N_PLATFORM_OSES; os++)
			for (int p = 0; p < N_PLATFORM_PACKAGES; p++)
				if (from->oses & 1U << os && from->packages & 1U << p)
					add_installs(&x, from, (enum platform_os)os, (enum platform_package)p);
	}
	d->p.installs = xrealloc(d->p.installs, (d->p.n_installs + 1) * sizeof(*d->p.installs));
}

static bool is_identifier(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* True: `word` is in the n bytes, not as part of a longer word. */
static bool has_word(const char *s, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++)
		if (memcmp(s + i, word, len) == 0 && (i == 0 || !is_identifier(s[i - 1])) &&
		    (i + len == n || !is_identifier(s[i + len])))
			return true;
	return false;
}

/* True: a line `import …` or `from …` names the module. */
static bool imports_module(const char *code, const char *module)
{
	for (const char *line = code; *line; line += *line == '\n') {
		size_t n = strcspn(line, "\n"), blank = strspn(line, " \t");

		if (blank < n && (strncmp(line + blank, "import ", 7) == 0 || strncmp(line + blank, "from ", 5) == 0) &&
		    has_word(line + blank, strcspn(line, "#\n") - blank, module))
			return true;
		line += n;
	}
	return false;
}

void platform_check(struct reader *r, const struct node *v, const struct platform_draft *d)
{
	const struct node *extension = tree_get(v, "extension");
	const struct node *code = tree_get(tree_get(v, "get_started"), "code");
	const struct node *prepare = tree_get(v, "prepare");
	const struct platform *p = &d->p;

	if (!extension && d->integration == PLATFORM_OUT_OF_TREE)
		refuse_at(r, v->line,
		    "platform.extension is missing: out-of-tree means that a package comes on top of PyTorch; name it");
	if (extension && d->p.extension_package && !d->p.is_autoloaded && !tree_get(extension, "import"))
		refuse_at(r, extension->line,
		    "platform.extension needs import, the module that programs import, or "
		    "autoload: true if PyTorch loads it by itself");
	if (code && p->start_code && p->device && p->extension_import && !p->is_autoloaded &&
	    has_word(p->start_code, strlen(p->start_code), p->device) &&
	    !imports_module(p->start_code, p->extension_import))
		refuse_at(r, code->line,
		    "platform.get_started.code uses \"%s\" without \"import %s\": add that line, "
		    "or set platform.extension.autoload: true if PyTorch loads the package by itself",
		    p->device, p->extension_import);
	for (size_t i = 0; i < d->p.n_steps; i++)
		if (d->p.steps[i].title && !d->p.steps[i].text && !d->p.steps[i].commands[0] && !d->p.steps[i].url)
			refuse_at(r, prepare->values[i]->line,
			    "platform.prepare: a step needs text, commands or url besides its title");
	if (platform_text_bytes(&d->p) > PLATFORM_TEXT_MAX_BYTES)
		refuse_at(r, v->line, "platform comes to more than %d KiB of text, each combination of install counted",
		    PLATFORM_TEXT_MAX_BYTES >> 10);
}
