#include "agent/agent.h"
#include "agent/check.h"
#include "agent/job_process.h"
#include "agent/options.h"

int main(int argc, char **argv)
{
	struct options options;
	int exit_code = options_parse(argc, argv, &options);

	if (exit_code >= 0)
		return exit_code;
	switch (options.mode) {
	case MODE_CHECK:
		return agent_check(options.config_path, options.is_online);
	case MODE_JOB:
		return job_process_main(options.config_path, options.job_folder);
	case MODE_ONCE:
		return agent_run(options.config_path, AGENT_ONCE);
	case MODE_RUN:
	default:
		return agent_run(options.config_path, AGENT_UNTIL_STOPPED);
	}
}
