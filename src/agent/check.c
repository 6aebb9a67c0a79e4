#include "agent/check.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "config/source.h"
#include "steps/steps.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

struct runner_config *agent_load_config(const char *config_path)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct runner_config *c;
	int rc = runner_config_load(config_path, &c, &messages);

	fputs(buf_str(&messages), stderr);
	buf_release(&messages);
	return rc ? NULL : c;
}

int agent_make_work_dir(const struct runner_config *c, struct error *e)
{
	if (mkdir(c->work_dir, 0700) == 0 || errno == EEXIST)
		return 0;
	return error_set(e, ERR_IO,
	    "work_dir %s: cannot be made: %s; make it, and give it to the user of outpost-runner",
	    c->work_dir, strerror(errno));
}

int agent_check(const char *config_path, bool is_online)
{
	struct runner_config *c = agent_load_config(config_path);
	struct error e = {0};
	int rc;

	if (!c)
		return 1;
	for (char **file = c->exposed_files; file && *file; file++)
		fprintf(stderr, "warning: %s: " EXPOSED_FILE_TEXT "\n", *file);
	rc = agent_make_work_dir(c, &e);
	if (!rc)
		rc = steps_check(c, &e);
	if (rc)
		fprintf(stderr, "%s: %s\n", config_path, *e.text ? e.text : err_text(rc));
	else
		printf("%s is right: %s, for %s at %s\n", config_path, c->name, c->accelerator,
		    c->server);
	if (!rc && is_online && !agent_check_online(c))
		rc = ERR_INVALID;
	runner_config_free(c);
	return rc ? 1 : 0;
}
