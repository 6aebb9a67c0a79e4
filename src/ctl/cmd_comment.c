#include "base/str.h"
#include "ctl/server.h"

int cmd_comment_preview(const struct ctl *ctl, int argc, char **argv)
{
	/* A terminal gets it rendered, a pipe the Markdown that GitHub would get. */
	const char *format = ctl->has_colour    ? "colour"
			     : ctl->is_terminal ? "terminal"
						: "markdown";
	int64_t number = 0;
	char path[96];
	json_t *v;

	for (int a = 0; a < argc; a++) {
		if (str_eq(argv[a], "--markdown"))
			format = "markdown";
		else if (number || parse_int64(argv[a], &number) || number < 1)
			return command_usage("comment preview");
	}
	if (!number)
		return command_usage("comment preview");
	if (ctl->is_json)
		format = "markdown";
	snprintf(path, sizeof(path), "/control/comments/%lld?format=%s&width=%d", (long long)number,
	    format, ctl->width);
	if (server_ask(ctl, "GET", path, NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	fputs(json_get_str(v, "text") ? json_get_str(v, "text") : "", stdout);
	json_decref(v);
	return EXIT_DONE;
}
