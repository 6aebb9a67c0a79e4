#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

static void print_result(const struct ctl *ctl, const json_t *v)
{
	static const char *const headings[] = {"ACCELERATOR", "RUNNER", "RESULT", "DISPATCH", NULL};
	const char *sha = json_get_str(v, "head_sha");
	int64_t pr = json_get_int(v, "pr", 0);
	struct table *t = table_new(headings);
	json_t *one;
	size_t i;

	if (pr)
		printf("#%lld %.8s\n", (long long)pr, sha ? sha : "");
	else
		printf("%.8s\n", sha ? sha : "");
	json_array_foreach(json_object_get(v, "runners"), i, one)
	{
		table_add(t, json_get_str(one, "accelerator"));
		table_add(t, json_get_str(one, "runner"));
		table_add(t, json_get_str(one, "result"));
		table_add(t, json_get_str(one, "dispatch"));
	}
	table_print(t, ctl, "nobody tests it");
}

enum { SHA_CHARS = 40, SHA_MIN_CHARS = 7 };

/* What may be a number or a SHA; which of the two it is the service decides. */
static bool is_change(const char *s)
{
	size_t n = strlen(s), n_digits = strspn(s, "0123456789");

	if (n_digits == n && strspn(s, "0") == n)
		return false;
	return n <= SHA_CHARS &&
	       (n_digits == n || (n >= SHA_MIN_CHARS && strspn(s, "0123456789abcdefABCDEF") == n));
}

int cmd_retest(const struct ctl *ctl, int argc, char **argv)
{
	static const struct argument_option none[] = {{.name = NULL}};
	const char *words[2] = {NULL, NULL};
	json_t *asked, *v;
	int exit_code;

	if (!arguments_read("retest", argc, argv, none, words, 1, 2))
		return EXIT_USAGE;
	if (!is_change(words[0]))
		return command_wrong("retest",
		    "'%s' is no pull request's number, and no commit's SHA or 7 digits of it",
		    words[0]);
	asked = json_object();
	json_set_str(asked, "change", words[0]);
	json_set_str(asked, "accelerator", words[1]);
	exit_code = server_ask(ctl, "POST", "/control/retest", asked, &v);
	json_decref(asked);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	print_result(ctl, v);
	json_decref(v);
	return EXIT_DONE;
}
