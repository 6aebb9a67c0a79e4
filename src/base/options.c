#include "base/options.h"

void options_refuse(const struct program *p, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", p->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry '%s --help'.\n", p->name);
	exit(2);
}

int options_read(const struct program *p, int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *word = argv[i], *equals = strchr(word, '=');
		size_t n = equals ? (size_t)(equals - word) : strlen(word);
		const struct program_option *o = p->options;

		if (str_eq(word, "--help") || str_eq(word, "-h")) {
			p->print_help(stdout);
			exit(0);
		}
		if (str_eq(word, "--version")) {
			printf("%s " OUTPOST_VERSION "\n", p->name);
			exit(0);
		}
		while (o->name && !(strlen(o->name) == n && memcmp(o->name, word, n) == 0) && !str_eq(o->letter, word))
			o++;
		if (!o->name || (o->flag && equals))
			options_refuse(p, "unknown option '%s'", word);
		if (o->text && !equals && i + 1 == argc)
			options_refuse(p, "%s needs a %s", word, o->value);
		if (o->flag)
			*o->flag = true;
		else
			*o->text = equals ? equals + 1 : argv[++i];
	}
	return i;
}
