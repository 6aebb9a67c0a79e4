#include "ctl/command.h"

#define COMMAND_ROW(function, name, usage, help, n_min, n_max) {name, usage, help, function, n_min, n_max},
const struct command COMMANDS[] = {COMMAND_LIST(COMMAND_ROW){.name = NULL}};
#undef COMMAND_ROW

void command_print_usage(FILE *out, const char *name)
{
	size_t n = strlen(name);

	for (const struct command *c = COMMANDS; c->name; c++)
		if (!strncmp(c->name, name, n) && (c->name[n] == '\0' || c->name[n] == ' '))
			fprintf(out, "Usage: outpostctl [-c FILE] [--json] %s%s%s\n", c->name, *c->usage ? " " : "",
			    c->usage);
}

int command_usage(const struct ctl *ctl)
{
	command_print_usage(stderr, ctl->command);
	return EXIT_USAGE;
}

int command_wrong(const struct ctl *ctl, const char *fmt, ...)
{
	struct buf line = BUF_INIT(4096);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	escape_line(&line, text, 0);
	fprintf(stderr, "outpostctl: %s\n", buf_str(&line));
	buf_release(&line);
	return command_usage(ctl);
}

bool argument_number(const struct ctl *ctl, const char *what, const char *text, int64_t min, int64_t max, int64_t *ret)
{
	int64_t n;

	if (parse_int64(text, &n) == 0 && n >= min && (!max || n <= max)) {
		*ret = n;
		return true;
	}
	if (max)
		(void)command_wrong(
		    ctl, "%s %s: must be a whole number from %lld to %lld", what, text, (long long)min, (long long)max);
	else
		(void)command_wrong(ctl, "%s %s: must be a whole number, %lld or more", what, text, (long long)min);
	return false;
}

/* value is NULL where the option is the last word. */
static bool set_option(const struct ctl *ctl, const struct argument_option *o, const char *value)
{
	struct buf choices = BUF_INIT(1024);
	bool is_choice = !o->choices;

	if (!value || (o->text && *o->text)) {
		(void)command_wrong(ctl, "%s %s", o->name, value ? "is given twice" : "needs a value");
		return false;
	}
	if (o->number)
		return argument_number(ctl, o->name, value, o->min, o->max, o->number);
	for (const char *const *c = o->choices; c && *c; c++) {
		buf_appendf(&choices, "%s%s", c == o->choices ? "" : ", ", *c);
		is_choice |= str_eq(*c, value);
	}
	if (is_choice)
		*o->text = value;
	else
		(void)command_wrong(ctl, "%s %s: must be one of %s", o->name, value, buf_str(&choices));
	buf_release(&choices);
	return is_choice;
}

bool arguments_read(
    const struct ctl *ctl, const struct argument_option *options, const char **words, int n_min, int n_max)
{
	int n = 0;

	for (int i = 0; i < ctl->argc; i++) {
		const char *word = ctl->argv[i];
		const struct argument_option *o = options;

		while (o && o->name && !str_eq(word, o->name))
			o++;
		if (o && o->name && o->flag) {
			*o->flag = true;
		} else if (o && o->name) {
			if (!set_option(ctl, o, i + 1 < ctl->argc ? ctl->argv[i + 1] : NULL))
				return false;
			i++;
		} else if (*word == '-' || *word == '\0' || n == n_max) {
			(void)command_wrong(ctl, "unexpected argument '%s'", word);
			return false;
		} else {
			words[n++] = word;
		}
	}
	if (n < n_min)
		(void)command_usage(ctl);
	return n >= n_min;
}
