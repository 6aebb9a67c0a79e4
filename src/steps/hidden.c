#include "steps/hidden.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "steps/environment.h"
#include "steps/step.h"

enum { PROBE_TIMEOUT_MS = 10 * 1000, PROBES_MAX = 8 };

static bool is_outside(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool is_inside(struct job *j, const char *path)
{
	char *script = xasprintf("test -e '%s'", path);
	struct child_end end;
	bool is_there = step_run_script(j, script, PROBE_TIMEOUT_MS, NULL, &end, NULL) ||
			!end.is_set_up || end.exit_code != 1;

	free(script);
	return is_there;
}

/* Where the steps' PATH has the program outside. free(); NULL: nowhere. */
static char *look_up(const struct job *j, const char *program)
{
	struct environment env = {.n = 0};
	const char *list = NULL;
	char *found = NULL;

	environment_of_step(&env, j);
	for (size_t i = 0; i < env.n; i++)
		if (str_has_prefix(env.list[i], "PATH="))
			list = env.list[i] + strlen("PATH=");
	while (list && *list && !found) {
		size_t n = strcspn(list, ":");
		char *path = xasprintf("%.*s/%s", (int)n, list, program);

		if (*path == '/' && !strchr(path, '\'') && is_outside(path))
			found = path;
		else
			free(path);
		list += n + (list[n] ? 1 : 0);
	}
	environment_release(&env);
	return found;
}

/* The word as a path outside, where that is worth a look. free(); NULL: it is not. */
static char *candidate(const struct job *j, const char *word, const char *last_line)
{
	if (!strstr(last_line, word))
		return NULL;
	if (*word == '/')
		return is_outside(word) ? xstrdup(word) : NULL;
	return strchr(word, '/') ? NULL : look_up(j, word);
}

char *hidden_find(struct job *j, const struct runner_step *step, const char *last_line)
{
	static const char separators[] = " \t\n;|&()<>\"'`=:,";
	char *script = xstrdup(step->run), *rest = NULL, *found = NULL;
	int n = 0;

	for (char *word = strtok_r(script, separators, &rest); word && !found && n < PROBES_MAX;
	     word = strtok_r(NULL, separators, &rest)) {
		char *path = strlen(word) > 1 && !strpbrk(word, "$*?[\\")
				 ? candidate(j, word, last_line)
				 : NULL;

		n += !!path;
		if (path && !is_inside(j, path))
			found = path;
		else
			free(path);
	}
	free(script);
	return found;
}

char *hidden_setting(const char *path)
{
	char *real = realpath(path, NULL), *slash, *text;
	struct stat st;

	if (!real)
		real = xstrdup(path);
	if (str_has_prefix(real, "/dev/")) {
		text = xasprintf("allow: {devices: [%s]}", real);
	} else {
		slash = strrchr(real, '/');
		if (slash && slash > real && (stat(real, &st) || !S_ISDIR(st.st_mode)))
			*slash = '\0';
		text = xasprintf("allow: {read: [%s]}", real);
	}
	free(real);
	return text;
}
