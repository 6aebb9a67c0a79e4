#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "ctl/server.h"

int cmd_backup(const struct ctl *ctl, int argc, char **argv)
{
	char *here, *path;
	json_t *asked, *v;
	int exit_code;

	if (argc > 1)
		return command_wrong("backup", "what is '%s'?", argv[1]);
	if (argc != 1 || !*argv[0])
		return command_usage("backup");
	here = getcwd(NULL, 0);
	path = path_join(here ? here : "/", argv[0]);
	asked = json_pack("{s:s}", "path", path);
	exit_code = asked ? server_ask(ctl, "POST", "/control/backup", asked, &v) : EXIT_FAILED;
	if (!asked)
		fprintf(stderr, "outpostctl: the path is no UTF-8\n");
	json_decref(asked);
	if (!exit_code && ctl->is_json)
		exit_code = server_print_json(v);
	else if (!exit_code) {
		printf("%s: %.1f MiB\n", path, (double)json_get_int(v, "bytes", 0) / 1048576.0);
		json_decref(v);
	}
	free(path);
	free(here);
	return exit_code;
}
