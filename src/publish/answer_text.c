#include "publish/publish_internal.h"

#include "model/event.h"
#include "model/statistics.h"

enum { WORD_MAX_CHARS = 80 };

/* `@BOT WORDS`, for copying. */
static void say_command(struct buf *out, const struct comment_options *o, const char *words)
{
	char *text = xasprintf("@%s %s", o->bot ? o->bot : "BOT", words);

	escape_markdown_code(out, text, WORD_MAX_CHARS, MARKDOWN_TEXT);
	free(text);
}

/* The commenter's word, up to the beginning of an HTML comment: the results comment is found by one, even in a code span. */
static void say_word(struct buf *out, const char *word)
{
	const char *end = word ? strstr(word, "<!--") : NULL;
	char *text = end ? xstrndup(word, (size_t)(end - word)) : xstrdup(word ? word : "");

	escape_markdown_code(out, text, WORD_MAX_CHARS, MARKDOWN_TEXT);
	free(text);
}

static void say_list(struct buf *out, const struct comment_options *o)
{
	static const char *const table[][2] = {
	    {"retest", "tests again what is red, missing, cancelled or was never tested"},
	    {"retest ACCELERATOR", "tests again on that one, whatever its result"},
	    {"retest ACCELERATOR/SUITE", "only on its runners that reported that suite"},
	    {"cancel", "cancels all runs of this head"},
	    {"stress TEST [on ACCELERATOR] [×N]",
		"members only: runs one test N times (10; at most 20) on this head and as often on "
		"its merge base, and replies with both pass rates"},
	    {"status", "replies with the verdict and the state of each accelerator"},
	    {"ok-to-test", "members only: lets this head run where it is held; `ok-to-test SHA` "
			   "names another, `ok-to-test cancel` takes it back"},
	    {"?", "this list"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		buf_append_str(out, "- ");
		say_command(out, o, table[i][0]);
		buf_appendf(out, ": %s\n", table[i][1]);
	}
	buf_append_str(out, "\nFor the pull request's author and members of the repository; one command a line.\n\n");
}

/* ---- one command ---- */

/* `{key}` stands for a member of the command, `{@words}` for a command to copy. NULL: a reaction is the answer. */
static const char *const RESULT_TEXTS[N_COMMAND_RESULTS + 1] = {[COMMAND_NOT_KNOWN] = "I do not know {word}.",
    [COMMAND_NO_ACCELERATOR] = "There is no accelerator {word}",
    [COMMAND_NOT_TESTED] = "{word} does not test this pull request: its paths, its label or its "
			   "rule for drafts do not ask for it.",
    [COMMAND_NO_SUITE] = "No job of {word} has reported the suite {suite}.",
    [COMMAND_NOTHING_RED] = "There is nothing to test again: nothing is red or missing. "
			    "{@retest ACCELERATOR} tests on one all the same.",
    [COMMAND_HELD] = "It is held, and a retest releases nothing: a member has to say {@ok-to-test} first.",
    [COMMAND_NOTHING_HELD] = "Nothing is held for that head.",
    [COMMAND_NOTHING_DECLINED] = "There is nothing to take back: nothing is held, or all of it has left.",
    [COMMAND_NOTHING_RUNS] = "Nothing runs for this head.",
    [COMMAND_NO_GITHUB] = "GitHub did not say what this pull request is like now, so nothing was "
			  "started. Please say it again later.",
    [COMMAND_NO_TEST] = "No job has reported a test {test} for this head",
    [COMMAND_NO_RERUNS] = "{test} cannot run again now: of the accelerators that reported it, none has ended its "
			  "first run on a runner that takes reruns (`reruns` is not `none`, and "
			  "`experiments.share` is not `0%`).",
    [COMMAND_STRESS_HELD] = "This head is held, and a stress run releases nothing: a member has to "
			    "say {@ok-to-test} first.",
    [COMMAND_ROUNDS] = "A test runs 1 to 20 times: ×1 to ×20.",
    [COMMAND_STRESS_BUSY] = "Too many stress runs are under way: one for each comment, two for a pull request and ten "
			    "in all. Please say it again when one has replied.",
    [COMMAND_SHARED] = "Another open pull request, #"};

static void say_text(struct buf *out, const char *text, const json_t *c, const struct comment_options *o)
{
	for (const char *at; (at = strchr(text, '{')); text = strchr(at, '}') + 1) {
		char *key = xstrndup(at + 1, strcspn(at + 1, "}"));

		buf_append(out, text, (size_t)(at - text));
		if (key[0] == '@')
			say_command(out, o, key + 1);
		else
			say_word(out, json_get_str(c, key));
		free(key);
	}
	buf_append_str(out, text);
}

static void say_result(struct buf *out, const json_t *c, enum command_result result, const struct comment_options *o)
{
	const char *word = json_get_str(c, "word"), *test = json_get_str(c, "test"), *hint = json_get_str(c, "hint"),
		   *text = RESULT_TEXTS[result];

	if (!text)
		return;
	if (result == COMMAND_NOT_KNOWN && str_eq(word, "stress"))
		text = "{word} needs the name of a test.";
	else if (result == COMMAND_NO_TEST && word && *word)
		text = "No job on {word} has reported a test {test} for this head";
	say_text(out, text, c, o);
	if (result == COMMAND_NO_TEST && test && !strchr(test, '/'))
		buf_append_str(out, ", or several suites have one");
	if (result == COMMAND_NO_TEST || result == COMMAND_NO_ACCELERATOR)
		say_text(out, hint && *hint ? "; did you mean {hint}?" : ".", c, o);
	if (result == COMMAND_SHARED)
		buf_appendf(out,
		    "%.20s, has the same head and shares its results, so this command is for "
		    "members of the repository here.",
		    hint ? hint : "");
	buf_append_str(out, "\n\n");
}

/* ---- the result of a stress run ---- */

/* One side's runs. A lost run shows nothing about the test, so it is no failure. */
struct side {
	const char *name;
	struct rate passed;
	int n_lost;
	double low, high; /* 95 % */
};

static struct side side_of(const json_t *accelerator, const char *key, const char *name)
{
	const json_t *o = json_object_get(accelerator, key);
	struct side s = {.name = name};

	s.passed.n_hits = (int)json_get_int(o, "passed", 0);
	s.passed.n = s.passed.n_hits + (int)json_get_int(o, "failed", 0);
	s.n_lost = (int)json_get_int(o, "lost", 0);
	rate_interval(s.passed, &s.low, &s.high);
	return s;
}

static int percent(double share) { return (int)(100 * share + 0.5); }

/* "head 3 of 10 passed (30 %, 11–60 %)" */
static void say_side(struct buf *out, const struct side *s)
{
	if (s->passed.n == 0) {
		buf_appendf(out, "%s gave no result", s->name);
		return;
	}
	buf_appendf(out, "%s %d of %d passed (%d %%, %d–%d %%)", s->name, s->passed.n_hits, s->passed.n,
	    percent((double)s->passed.n_hits / s->passed.n), percent(s->low), percent(s->high));
	if (s->n_lost)
		buf_appendf(out, " and %d run%s gave no result", s->n_lost, s->n_lost == 1 ? "" : "s");
}

static const char *meaning_of(const struct side *head, const struct side *base)
{
	if (head->passed.n == 0 || base->passed.n == 0)
		return "Without results on both sides there is nothing to compare.";
	if (head->high < base->low)
		return "The intervals are apart: it fails more often here than on the merge base.";
	if (base->high < head->low)
		return "The intervals are apart: it passes more often here than on the merge base.";
	return "The intervals overlap: these runs show no difference.";
}

/* ---- the reply ---- */

bool answer_needs_view(const json_t *facts)
{
	json_t *c;
	size_t i;

	if (json_object_get(facts, "stress"))
		return true;
	json_array_foreach(json_object_get(facts, "commands"), i, c)
	{
		if (command_kind_parse(json_get_str(c, "kind")) == COMMAND_STATUS)
			return true;
	}
	return false;
}

char *answer_marker(const json_t *facts)
{
	/* The comment may have another reply, which it got at once. */
	return xasprintf("<!-- outpost:reply:%lld%s -->", (long long)json_get_int(facts, "comment", 0),
	    json_object_get(facts, "stress") ? ":stress" : "");
}

char *answer_text(const json_t *facts, const struct change_view *v, const struct comment_options *o)
{
	struct buf out = BUF_INIT(COMMENT_MAX_BYTES);
	char *marker = answer_marker(facts);
	bool needs_list = false, has_status = false;
	json_t *c;
	size_t i;

	buf_appendf(&out, "%s\n", marker);
	if (json_object_get(facts, "stress")) {
		/* "- `model/llama3` on Ascend NPU: head …, merge base …. The intervals …" */
		const json_t *stress = json_object_get(facts, "stress");
		json_t *one;
		size_t k;

		json_array_foreach(json_object_get(stress, "accelerators"), k, one)
		{
			const char *name = json_get_str(one, "accelerator");
			const struct accelerator_view *a = v && name ? change_view_accelerator(v, name) : NULL;
			struct side head = side_of(one, "head", "head"), base = side_of(one, "base", "merge base");

			buf_append_str(&out, "- ");
			say_word(&out, json_get_str(stress, "test"));
			buf_append_str(&out, " on ");
			escape_markdown_label(&out, a ? a->title : name, WORD_MAX_CHARS, MARKDOWN_TEXT);
			buf_append_str(&out, ": ");
			say_side(&out, &head);
			buf_append_str(&out, ", ");
			say_side(&out, &base);
			buf_appendf(&out, ". %s\n", meaning_of(&head, &base));
		}
		buf_append_str(&out, "\nIn brackets: the share that passed, and its 95 % interval (Wilson).\n\n");
	}
	json_array_foreach(json_object_get(facts, "commands"), i, c)
	{
		enum command_kind kind = command_kind_parse(json_get_str(c, "kind"));
		enum command_result result = command_result_parse(json_get_str(c, "result"));

		needs_list |= kind == COMMAND_HELP || result == COMMAND_NOT_KNOWN;
		if (kind == COMMAND_STATUS && result == COMMAND_DONE && !has_status) {
			has_status = true;
			struct table t;

			if (v) {
				table_init(&t, v);
				comment_render_status(&t, o, &out);
				table_release(&t);
			} else {
				buf_append_str(&out, "Nothing was tested yet.");
			}
			buf_append_str(&out, "\n\n");
		}
		say_result(&out, c, result, o);
	}
	if (needs_list)
		say_list(&out, o);
	free(marker);
	return buf_detach(&out);
}
