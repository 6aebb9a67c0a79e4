#include "model/accelerator_state.h"

void standing_release(struct standing *s)
{
	FREE_AND_NULL(s->sha);
	FREE_AND_NULL(s->silent_sha);
}

bool red_is_overdue(int64_t since_ms, int64_t now_ms) { return since_ms && now_ms - since_ms >= RED_OVERDUE_MS; }

const char *red_by_name(int64_t red_since_ms, bool is_silence)
{
	return !red_since_ms ? NULL : is_silence ? "silence" : "tests";
}

static bool is_red_by_tests(const struct accelerator_facts *f) { return f->red_since_ms && !f->is_red_in_silence; }

static bool status_applies(enum accelerator_status s, const struct accelerator_facts *f, int64_t now_ms)
{
	switch (s) {
	case ACCELERATOR_OFF:
		return f->level == LEVEL_1;
	case ACCELERATOR_OVERDUE:
		return is_red_by_tests(f) && red_is_overdue(f->red_since_ms, now_ms);
	case ACCELERATOR_RED:
		return is_red_by_tests(f) || f->newest == BRANCH_RED;
	case ACCELERATOR_NOT_COUNTED:
		return f->is_unhealthy;
	case ACCELERATOR_SILENT:
		return f->last_report_ms && now_ms - f->last_report_ms > SILENT_AFTER_MS;
	case ACCELERATOR_NO_REPORT:
		return f->red_since_ms || f->no_report_ms || f->newest == BRANCH_NO_REPORT;
	case ACCELERATOR_NO_PASS:
		return f->newest == BRANCH_NO_PASS;
	case ACCELERATOR_STALE:
		return f->newest != BRANCH_UNTESTED && now_ms - f->tested_ms > SILENT_AFTER_MS;
	case ACCELERATOR_EXPLAINED:
		return f->newest == BRANCH_EXPLAINED;
	case ACCELERATOR_GREEN:
		return f->newest == BRANCH_PASSED;
	case ACCELERATOR_UNTESTED:
	case N_ACCELERATOR_STATUSES:
		break;
	}
	return true;
}

struct accelerator_state accelerator_state_of(const struct accelerator_facts *f, int64_t now_ms)
{
	struct accelerator_state s = {.status = ACCELERATOR_OFF};

	while (!status_applies(s.status, f, now_ms))
		s.status++;
	if (s.status == ACCELERATOR_OFF)
		return s;
	if (s.status == ACCELERATOR_OVERDUE || (s.status == ACCELERATOR_RED && is_red_by_tests(f)))
		s.since_ms = f->red_since_ms;
	else if (s.status == ACCELERATOR_RED || s.status == ACCELERATOR_STALE)
		s.since_ms = f->tested_ms;
	else if (s.status == ACCELERATOR_SILENT)
		s.since_ms = f->last_report_ms;
	else if (s.status == ACCELERATOR_NO_REPORT)
		s.since_ms = f->red_since_ms ? f->red_since_ms : f->no_report_ms ? f->no_report_ms : f->tested_ms;
	s.is_overdue = red_is_overdue(f->red_since_ms, now_ms);
	s.has_no_report = accelerator_status_is_red(s.status) && f->no_report_ms;
	s.is_not_counted = f->is_unhealthy && s.status != ACCELERATOR_NOT_COUNTED;
	return s;
}

bool accelerator_status_is_red(enum accelerator_status s) { return s == ACCELERATOR_OVERDUE || s == ACCELERATOR_RED; }

bool accelerator_status_is_green(enum accelerator_status s)
{
	return s == ACCELERATOR_GREEN || s == ACCELERATOR_EXPLAINED;
}

const struct accelerator_words *accelerator_words(enum accelerator_status s)
{
	static const struct accelerator_words words[N_ACCELERATOR_STATUSES] = {
	    [ACCELERATOR_OVERDUE] = {"overdue", "overdue", "✗", "fail"},
	    [ACCELERATOR_RED] = {"red", "red", "✗", "fail"},
	    [ACCELERATOR_NOT_COUNTED] = {"not_counted", "unhealthy, not counted", "!", "error"},
	    [ACCELERATOR_SILENT] = {"silent", "silent", "?", "miss"},
	    [ACCELERATOR_NO_REPORT] = {"no_report", "no report", "?", "miss"},
	    [ACCELERATOR_STALE] = {"stale", "not tested recently", "?", "miss"},
	    [ACCELERATOR_NO_PASS] = {"no_pass", "nothing passed", "?", "miss"},
	    [ACCELERATOR_UNTESTED] = {"untested", "not tested yet", "?", "miss"},
	    [ACCELERATOR_EXPLAINED] = {"explained", "all red is explained", "✓", "pass"},
	    [ACCELERATOR_GREEN] = {"green", "green", "✓", "pass"},
	    [ACCELERATOR_OFF] = {"off", "not shown", "–", "skip"}};

	return &words[s];
}

const char *accelerator_state_text(const struct accelerator_state *s)
{
	if (s->status == ACCELERATOR_OVERDUE)
		return accelerator_words(ACCELERATOR_RED)->word;
	if (s->status == ACCELERATOR_STALE)
		return "not tested";
	return accelerator_words(s->status)->word;
}
