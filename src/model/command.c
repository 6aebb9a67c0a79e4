#include "model/command.h"

#include <stddef.h>

#include "base/str.h"

static const char *const kind_names[N_COMMAND_KINDS] = {
    [COMMAND_UNKNOWN] = "unknown",
    [COMMAND_RETEST] = "retest",
    [COMMAND_CANCEL] = "cancel",
    [COMMAND_OK_TO_TEST] = "ok-to-test",
    [COMMAND_DECLINE] = "ok-to-test cancel",
    [COMMAND_STATUS] = "status",
    [COMMAND_HELP] = "?",
    [COMMAND_STRESS] = "stress",
};

static const struct {
	const char *name;
	bool is_error;
	const char *why;
} results[] = {
#define X(e, name, is_error, why) {name, is_error, why},
    COMMAND_RESULTS(X)
#undef X
};

const char *command_kind_name(enum command_kind k)
{
	return kind_names[k];
}

enum command_kind command_kind_parse(const char *name)
{
	int k = 0;

	while (k < N_COMMAND_KINDS && !(name && str_eq(kind_names[k], name)))
		k++;
	return (enum command_kind)k;
}

const char *command_result_name(enum command_result r)
{
	return results[r].name;
}

enum command_result command_result_parse(const char *name)
{
	int r = 0;

	while (r < N_COMMAND_RESULTS && !(name && str_eq(results[r].name, name)))
		r++;
	return (enum command_result)r;
}

bool command_result_is_error(enum command_result r)
{
	return results[r].is_error;
}

const char *command_result_why(enum command_result r)
{
	return results[r].why;
}
