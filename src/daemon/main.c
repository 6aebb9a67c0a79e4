#include "daemon/check.h"
#include "daemon/daemon.h"
#include "daemon/options.h"

int main(int argc, char **argv)
{
	struct options options;
	int exit_code = options_parse(argc, argv, &options);

	if (exit_code >= 0)
		return exit_code;
	return options.is_check ? daemon_check(options.config_path)
				: daemon_run(options.config_path);
}
