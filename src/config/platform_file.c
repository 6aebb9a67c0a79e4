#include "config/platform_file.h"

enum { TEXT_MAX_BYTES = 4000, LINE_MAX_BYTES = 1000, TITLE_MAX_BYTES = 200, URL_MAX_BYTES = 1024 };

static const struct choice INTEGRATIONS[] = {
    {"in-tree", PLATFORM_IN_TREE}, {"out-of-tree", PLATFORM_OUT_OF_TREE}, {NULL, 0}};
static const struct choice BUILDS[] = {{"stable", BUILD_STABLE}, {"nightly", BUILD_NIGHTLY}, {NULL, 0}};
static const struct choice OSES[] = {{"linux", OS_LINUX}, {"macos", OS_MACOS}, {"windows", OS_WINDOWS}, {NULL, 0}};
static const struct choice PACKAGES[] = {{"pip", PACKAGE_PIP}, {"conda", PACKAGE_CONDA}, {"libtorch", PACKAGE_LIBTORCH},
    {"docker", PACKAGE_DOCKER}, {"source", PACKAGE_SOURCE}, {NULL, 0}};
static const struct choice LANGUAGES[] = {{"python", LANGUAGE_PYTHON}, {"cpp", LANGUAGE_CPP}, {NULL, 0}};

/* ---- checks of values ---- */

static bool check_device(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return (islower((unsigned char)*s) && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_")]) ||
	       check_failed(why, "what torch.device() takes, as cuda or npu, without an index");
}

static bool check_package(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	bool is_right = isalnum((unsigned char)*s);

	(void)r;
	for (const char *c = s; *c; c++)
		is_right = is_right && (isalnum((unsigned char)*c) || strchr("._-", *c));
	return is_right || check_failed(why, "the name of one package, as torch-npu");
}

static bool check_module(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	bool is_start = true, is_right = true;

	(void)r;
	for (const char *c = s; *c; c++) {
		is_right = is_right && (isalpha((unsigned char)*c) || *c == '_' ||
					   (!is_start && (isdigit((unsigned char)*c) || *c == '.')));
		is_start = *c == '.';
	}
	return (is_right && !is_start) || check_failed(why, "a Python module, as torch_npu");
}

static bool check_release(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return platform_is_release(s, s) || check_failed(why, "a release of PyTorch such as \"2.9.1\"");
}

/* True if the text, which people copy into a shell, holds nothing that they cannot see: no invisible characters, no
 * marks that turn the reading direction. */
static bool is_all_visible(const char *s)
{
	struct buf shown_as = BUF_INIT(SIZE_MAX / 2);
	char *text = xcalloc(1, strlen(s) + 1);
	size_t n = 0;

	for (const char *c = s; *c; c++)
		if (!strchr(" \t\n", *c))
			text[n++] = *c;
	escape_line(&shown_as, text, 0);
	bool is_same = str_eq(buf_str(&shown_as), text);
	buf_release(&shown_as);
	free(text);
	return is_same;
}

static bool check_command(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (check_line(r, s, why) && is_all_visible(s)) ||
	       check_failed(why, "one line without control or invisible characters");
}

static bool check_code(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (check_text(r, s, why) && is_all_visible(s)) ||
	       check_failed(why, "text without control or invisible characters");
}

/* ---- how it is read ---- */

/* One value where a list is taken stands for a list of it. */
static struct node as_list(const struct node *v, struct node *one[1])
{
	if (v->kind != NODE_SCALAR)
		return *v;
	one[0] = (struct node *)v;
	return (struct node){.kind = NODE_LIST, .line = v->line, .n = 1, .values = one};
}

static bool is_bounded(struct reader *r, const struct field *f, const struct node *v, size_t max, const char *what)
{
	if (v->n <= max)
		return true;
	refuse_at(r, v->line, "%s has more than %zu %s", FIELD_NAME(r, f), max, what);
	return false;
}

/* char **: a text or a list of them. */
static void field_few_texts(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct node *one[1], list = as_list(v, one);

	if (is_bounded(r, f, &list, PLATFORM_LISTED_MAX, "entries"))
		field_texts(r, f, &list, target);
}

/* Bits, 1 << value: a word or a list of them. */
static void field_choices(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct node *one[1], list = as_list(v, one);
	unsigned *bits = target;

	if (list.kind != NODE_LIST) {
		refuse_kind(r, f, v, "a word or a list of words");
		return;
	}
	if (list.n == 0)
		refuse_at(r, v->line, "%s must not be empty", FIELD_NAME(r, f));
	for (size_t i = 0; i < list.n && i < PLATFORM_LISTED_MAX; i++) {
		int value = -1;

		field_choice(r, f, list.values[i], &value);
		if (value >= 0)
			*bits |= 1U << value;
	}
}

/* char **: a list of lines, or one text that has them all. */
static void field_commands(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct node lines[PLATFORM_LISTED_MAX + 1], *values[PLATFORM_LISTED_MAX + 1];
	struct node list = {.kind = NODE_LIST, .line = v->line, .values = values};
	char *text, *at;

	if (v->kind != NODE_SCALAR) {
		if (is_bounded(r, f, v, PLATFORM_LISTED_MAX, "lines"))
			field_texts(r, f, v, target);
		return;
	}
	text = at = xstrdup(v->text);
	for (char *line; (line = strsep(&at, "\n")) && list.n <= PLATFORM_LISTED_MAX;) {
		if (!*line)
			continue;
		lines[list.n] = (struct node){.kind = NODE_SCALAR, .line = v->line, .text = line};
		values[list.n] = &lines[list.n];
		list.n++;
	}
	if (is_bounded(r, f, &list, PLATFORM_LISTED_MAX, "lines"))
		field_texts(r, f, &list, target);
	free(text);
}

/* char *: several lines, without blanks at the end. */
static void field_block(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char **text = target;

	field_text(r, f, v, target);
	size_t n = *text ? strlen(*text) : 0;
	while (n && isspace((unsigned char)(*text)[n - 1]))
		(*text)[--n] = '\0';
}

/* A list of maps: whether it is one, and not too long. */
static bool want_maps(struct reader *r, const struct field *f, const struct node *v, size_t max)
{
	return expect_kind(r, f, v, NODE_LIST) && is_bounded(r, f, v, max, "entries");
}

/* ---- the tables ---- */

static field_read_fn field_installs, field_steps, field_help;

#define AT(member) offsetof(struct install_draft, member)
static const struct mapping INSTALL =
    MAPPING("platform.install", {"build", field_choice, REQUIRED, .offset = AT(build), .choices = BUILDS},
	{"torch", field_text, OPTIONAL, AT(torch), check_release, .max = 32},
	{"os", field_choices, REQUIRED, .offset = AT(oses), .choices = OSES},
	{"package", field_choices, REQUIRED, .offset = AT(packages), .choices = PACKAGES},
	{"platform", field_few_texts, OPTIONAL, AT(versions), check_line, .min = 1, .max = 60},
	{"language", field_choices, OPTIONAL, .offset = AT(languages), .choices = LANGUAGES},
	{"commands", field_commands, REQUIRED, AT(commands), check_command, .min = 1, .max = LINE_MAX_BYTES},
	{"note", field_block, OPTIONAL, AT(note), check_text, .max = TEXT_MAX_BYTES});
#undef AT

#define AT(member) offsetof(struct platform_step, member)
static const struct mapping PREPARE =
    MAPPING("platform.prepare", {"title", field_text, REQUIRED, AT(title), check_line, .max = TITLE_MAX_BYTES},
	{"text", field_block, OPTIONAL, AT(text), check_text, .max = TEXT_MAX_BYTES},
	{"commands", field_commands, OPTIONAL, AT(commands), check_command, .max = LINE_MAX_BYTES},
	{"url", field_text, OPTIONAL, AT(url), check_link_url, .max = URL_MAX_BYTES});
#undef AT

#define AT(member) offsetof(struct platform_link, member)
static const struct mapping HELP =
    MAPPING("platform.help", {"title", field_text, REQUIRED, AT(title), check_line, .max = TITLE_MAX_BYTES},
	{"url", field_text, REQUIRED, AT(url), check_link_url, .max = URL_MAX_BYTES});
#undef AT

#define AT(member) offsetof(struct platform, member)
static const struct mapping EXTENSION =
    MAPPING("platform.extension", {"package", field_text, REQUIRED, AT(extension_package), check_package, .max = 100},
	{"import", field_text, OPTIONAL, AT(extension_import), check_module, .max = 100},
	{"autoload", field_bool, OPTIONAL, .offset = AT(is_autoloaded)},
	{"url", field_text, OPTIONAL, AT(extension_url), check_link_url, .max = URL_MAX_BYTES});

static const struct mapping GET_STARTED =
    MAPPING("platform.get_started", {"text", field_block, OPTIONAL, AT(start_text), check_text, .max = TEXT_MAX_BYTES},
	{"code", field_block, OPTIONAL, AT(start_code), check_code, .max = TEXT_MAX_BYTES});
#undef AT

#define AT(member) offsetof(struct platform_draft, member)
const struct mapping PLATFORM_MAPPING =
    MAPPING("platform", {"integration", field_choice, REQUIRED, .offset = AT(integration), .choices = INTEGRATIONS},
	{"device", field_text, REQUIRED, AT(p.device), check_device, .max = 32},
	{"summary", field_text, REQUIRED, AT(p.summary), check_line, .max = 300},
	{"example", field_bool, OPTIONAL, .offset = AT(p.is_example)},
	{"max_age", field_duration, OPTIONAL, .offset = AT(p.max_age_ms), .min = DAYS(1), .max = DAYS(365)},
	{"extension", field_map, OPTIONAL, .offset = AT(p), .map = &EXTENSION},
	{"versions", field_few_texts, OPTIONAL, AT(p.versions), check_line, .max = 60},
	{"install", field_installs, REQUIRED, .map = &INSTALL},
	{"prepare", field_steps, OPTIONAL, .offset = AT(p), .map = &PREPARE},
	{"get_started", field_map, OPTIONAL, .offset = AT(p), .map = &GET_STARTED},
	{"help", field_help, OPTIONAL, .offset = AT(p), .map = &HELP});
#undef AT

/* ---- its lists ---- */

static void field_installs(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct platform_draft *d = target;

	if (!want_maps(r, f, v, PLATFORM_INSTALLS_MAX))
		return;
	if (v->n == 0)
		refuse_at(r, v->line,
		    "platform.install needs at least one way to install it: build, os, package and commands");
	d->installs = xcalloc(v->n, sizeof(*d->installs));
	for (size_t i = 0; i < v->n; i++) {
		struct install_draft *one = &d->installs[d->n_installs++];
		size_t n_before = r->problems->n;

		*one = (struct install_draft){.build = -1, .line = v->values[i]->line};
		read_mapping(r, f->map, v->values[i], one);
		one->is_right = r->problems->n == n_before;
	}
}

static void field_steps(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct platform *p = target;

	if (!want_maps(r, f, v, PLATFORM_LISTED_MAX))
		return;
	p->steps = xcalloc(v->n, sizeof(*p->steps));
	for (size_t i = 0; i < v->n; i++) {
		struct platform_step *s = &p->steps[p->n_steps++];

		s->commands = strv_copy(NULL);
		read_mapping(r, f->map, v->values[i], s);
	}
}

static void field_help(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct platform *p = target;

	if (!want_maps(r, f, v, PLATFORM_LISTED_MAX))
		return;
	p->help = xcalloc(v->n, sizeof(*p->help));
	for (size_t i = 0; i < v->n; i++)
		read_mapping(r, f->map, v->values[i], &p->help[p->n_help++]);
}

void field_platform(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct platform_draft d = {.integration = -1, .p = {.max_age_ms = DAYS(14)}};
	struct platform **ret = target;

	if (!expect_kind(r, f, v, NODE_MAP))
		return;
	d.p.versions = strv_copy(NULL);
	read_mapping(r, f->map, v, &d);
	d.p.integration = (enum platform_integration)(d.integration < 0 ? 0 : d.integration);
	platform_expand(r, &d);
	platform_check(r, v, &d);
	for (size_t i = 0; i < d.n_installs; i++) {
		free(d.installs[i].torch);
		strv_free(d.installs[i].versions);
		strv_free(d.installs[i].commands);
		free(d.installs[i].note);
	}
	free(d.installs);
	*ret = xmemdup(&d.p, sizeof(d.p));
}
