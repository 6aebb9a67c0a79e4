#include "agent/agent.h"

int agent_run(const char *config_path)
{
	return config_path[0] ? 1 : 2;
}
