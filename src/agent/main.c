/* outpost-runner: its command line. */
#include "agent/agent.h"

static const char USAGE[] = "Usage: outpost-runner -c FILE [--check [--online] | --once]\n"
			    "\n"
			    "Takes work for one accelerator from an Outpost, runs it on this machine and reports\n"
			    "it. Connects out only. Runs in the foreground.\n"
			    "\n"
			    "  -c, --config FILE  the configuration, runner.yml\n"
			    "      --check        check the configuration, the sandbox, git and the work folder,\n"
			    "                     print every mistake, and exit 0 or 1; takes no work\n"
			    "      --online       with --check: also check with the server the token, the labels,\n"
			    "                     waiting work, the clock and the version\n"
			    "      --once         take one job, report it, and exit; 1 if the server refuses\n"
			    "                     this machine\n"
			    "      --version      print the version\n"
			    "      --help         print this\n"
			    "\n"
			    "After SIGTERM it claims no more work and finishes the current job, or returns it after\n"
			    "`drain`; a second SIGTERM returns it at once. SIGHUP reads the token again.\n";

static void print_help(FILE *out) { fputs(USAGE, out); }

int main(int argc, char **argv)
{
	const char *config_path = NULL;
	const char *job_folder = NULL; /* of the process that runs the steps: for the agent, not for people */
	bool is_check = false, is_online = false, is_once = false;
	const struct program program = {"outpost-runner", print_help,
	    (const struct program_option[]){
		{"--config", "-c", .text = &config_path, .value = "file"},
		{"--check", .flag = &is_check},
		{"--online", .flag = &is_online},
		{"--once", .flag = &is_once},
		{"--job", .text = &job_folder, .value = "folder"},
		{NULL},
	    }};

	int i = options_read(&program, argc, argv);
	if (i < argc)
		options_refuse(&program, "unexpected argument '%s'", argv[i]);
	if (is_check + is_once + (job_folder != NULL) > 1)
		options_refuse(&program, "--check and --once do not go together");
	if (is_online && !is_check)
		options_refuse(&program, "--online goes with --check only");
	if (!config_path)
		options_refuse(&program, "no configuration: give -c FILE");
	if (is_check)
		return agent_check(config_path, is_online);
	if (job_folder)
		return job_process_main(config_path, job_folder);
	return agent_run(config_path, is_once ? AGENT_ONCE : AGENT_UNTIL_STOPPED);
}
