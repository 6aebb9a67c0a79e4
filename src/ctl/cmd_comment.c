#include "ctl/arguments.h"
#include "ctl/server.h"

int cmd_comment_preview(const struct ctl *ctl, int argc, char **argv)
{
	/* A terminal gets it rendered, a pipe the Markdown that GitHub would get. */
	const char *format = ctl->has_colour    ? "colour"
			     : ctl->is_terminal ? "terminal"
						: "markdown";
	bool is_markdown = false;
	const struct argument_option options[] = {
	    {.name = "--markdown", .flag = &is_markdown}, {.name = NULL}};
	const char *pr;
	int64_t number;
	char path[96];
	json_t *v;

	if (!arguments_read("comment preview", argc, argv, options, &pr, 1, 1) ||
	    !argument_number("comment preview", "PR", pr, 1, 0, &number))
		return EXIT_USAGE;
	if (ctl->is_json || is_markdown)
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
