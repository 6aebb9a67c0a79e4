#include "agent/agent.h"

int main(int argc, char **argv)
{
	return agent_run(argc > 2 ? argv[2] : "");
}
