#include "ctl/arguments.h"

#include "base/buf.h"
#include "base/str.h"

static bool is_one_of(const char *const *choices, const char *text)
{
	for (; *choices; choices++)
		if (str_eq(*choices, text))
			return true;
	return false;
}

static bool refuse_choice(const char *command, const struct argument_option *o, const char *text)
{
	struct buf all = BUF_INIT(1024);

	for (const char *const *c = o->choices; *c; c++)
		buf_appendf(&all, "%s%s", c == o->choices ? "" : ", ", *c);
	(void)command_wrong(command, "%s %s: must be one of %s", o->name, text, buf_str(&all));
	buf_release(&all);
	return false;
}

bool argument_number(
    const char *command, const char *what, const char *text, int64_t min, int64_t max, int64_t *ret)
{
	int64_t n;

	if (parse_int64(text, &n) == 0 && n >= min && (!max || n <= max)) {
		*ret = n;
		return true;
	}
	if (max)
		(void)command_wrong(command, "%s %s: must be a whole number from %lld to %lld",
		    what, text, (long long)min, (long long)max);
	else
		(void)command_wrong(command, "%s %s: must be a whole number, %lld or more", what,
		    text, (long long)min);
	return false;
}

static bool take_value(const char *command, const struct argument_option *o, const char *value)
{
	if (!value || (o->text && *o->text)) {
		(void)command_wrong(
		    command, "%s %s", o->name, value ? "is here twice" : "needs a value");
		return false;
	}
	if (o->number)
		return argument_number(command, o->name, value, o->min, o->max, o->number);
	if (o->choices && !is_one_of(o->choices, value))
		return refuse_choice(command, o, value);
	*o->text = value;
	return true;
}

bool arguments_read(const char *command, int argc, char **argv,
    const struct argument_option *options, const char **words, int n_min, int n_max)
{
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const struct argument_option *o = options;

		while (o->name && !str_eq(argv[i], o->name))
			o++;
		if (o->name && o->flag) {
			*o->flag = true;
		} else if (o->name) {
			if (!take_value(command, o, i + 1 < argc ? argv[i + 1] : NULL))
				return false;
			i++;
		} else if (argv[i][0] == '-' || argv[i][0] == '\0' || n == n_max) {
			(void)command_wrong(command, "what is '%s'?", argv[i]);
			return false;
		} else {
			words[n++] = argv[i];
		}
	}
	if (n < n_min)
		(void)command_usage(command);
	return n >= n_min;
}
