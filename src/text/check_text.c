/* The red tests with their evidence, the contact and how to test again, and an annotation for each red test
 * with a file and a line. Vendors' texts appear only as code or as plain text. */
#include "text/check_output.h"

#include "text/summary.h"

enum {
	TEST_CHARS = 120,
	LABEL_CHARS = 40,
	VENDOR_URL_BYTES = 1024,
	LINES_MAX = 50,
	LINES_MAX_BYTES = 50000,
	MESSAGE_CHARS = 200,
	REASON_CHARS = 160,
	ANNOTATION_CHARS = 1024,
	PATH_MAX_BYTES = 512,
	ONCALLS_MAX = 5
};

static char *full_test_name(const struct verdict_view *w)
{
	bool has_suite = w->suite && w->suite[0];

	return xasprintf("%s%s%s%s%s%s", has_suite ? w->suite : "", has_suite ? "/" : "", w->test, w->dtype ? " [" : "",
	    w->dtype ? w->dtype : "", w->dtype ? "]" : "");
}

/* ---- the summary ---- */

static void append_red(struct buf *out, const struct verdict_view *w, const struct check_options *o)
{
	char *name = full_test_name(w);

	buf_appendf(out, "- %s ", w->status == TEST_FAIL ? "✗" : w->status == TEST_ERROR ? "!" : "?");
	escape_markdown_code(out, name, TEST_CHARS, MARKDOWN_TEXT);
	if (w->message && w->message[0]) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, w->message, MESSAGE_CHARS, MARKDOWN_TEXT);
	}
	const char *attribution = attribution_applies(w->status) ? attribution_name(w->attribution) : NULL;
	struct verdict_evidence e = verdict_evidence_of(w);
	struct buf url = BUF_INIT(CHECK_TEXT_MAX_BYTES);

	if (attribution)
		buf_appendf(out, " · %s", attribution);
	if (w->reason && w->reason[0]) {
		buf_append_str(out, ": ");
		escape_markdown_code(out, w->reason, REASON_CHARS, MARKDOWN_TEXT);
	}
	if ((e.issue_url && escape_url(&url, e.issue_url, VENDOR_URL_BYTES, URL_HTTPS)) ||
	    own_url_append(&url, o->public_url, "jobs", e.job))
		buf_appendf(out, " · [evidence](%s)", buf_str(&url));
	buf_release(&url);
	rerun_append(out, w, o->public_url);
	buf_append_char(out, '\n');
	free(name);
}

enum part { PART_COUNTING, PART_EXCUSED, PART_MISSING, N_PARTS };
static const char *const HEADINGS[N_PARTS] = {[PART_COUNTING] = "**May come from this change**",
    [PART_EXCUSED] = "**Known, flaky or red on the base as well**",
    [PART_MISSING] = "**No result**"};

static enum part part_of(const struct verdict_view *w)
{
	if (w->status == TEST_MISS)
		return PART_MISSING;
	return check_verdict_counts(w) ? PART_COUNTING : PART_EXCUSED;
}

static bool is_red_of(const struct verdict_view *w, size_t accelerator, const struct job_view *job, enum part part)
{
	return w->accelerator == accelerator && w->job == job->id && test_status_is_red(w->status) &&
	       part_of(w) == part;
}

static void append_part(struct buf *out, const struct change_view *v, size_t accelerator, const struct job_view *job,
    enum part part, const struct check_options *o)
{
	struct buf line = BUF_INIT(CHECK_TEXT_MAX_BYTES);
	size_t n = 0, n_more = 0;

	for (size_t i = 0; i < v->n_verdicts; i++) {
		if (!is_red_of(&v->verdicts[i], accelerator, job, part))
			continue;
		if (n + n_more == 0)
			buf_appendf(out, "%s\n\n", HEADINGS[part]);
		buf_clear(&line);
		if (n < LINES_MAX)
			append_red(&line, &v->verdicts[i], o);
		if (n == LINES_MAX || out->len + line.len > LINES_MAX_BYTES) {
			n_more++;
			continue;
		}
		buf_append(out, line.data, line.len);
		n++;
	}
	if (n_more)
		buf_appendf(out, "- … and %zu more\n", n_more);
	if (n + n_more)
		buf_append_char(out, '\n');
	buf_release(&line);
}

/* ---- annotations ---- */

/* True if no character is invisible or changes the direction of the text. */
static bool is_seen_whole(const char *s)
{
	struct buf line = BUF_INIT(4 * PATH_MAX_BYTES);

	escape_line(&line, s, 0);
	bool is_whole = str_eq(buf_str(&line), s);
	buf_release(&line);
	return is_whole;
}

/* True if the vendor's file can only be the path in the tree that people read. */
static bool is_place(const struct verdict_view *w)
{
	const char *at = w->file;

	if (!at || !at[0] || at[0] == '/' || strlen(at) > PATH_MAX_BYTES || w->line <= 0 || w->line > INT32_MAX)
		return false;
	if (strchr(at, '\\') || !is_seen_whole(at))
		return false;
	return !str_eq(at, "..") && !str_has_prefix(at, "../") && !strstr(at, "/../") && !str_has_suffix(at, "/..");
}

static void annotate(const struct change_view *v, size_t accelerator, const struct job_view *job, enum part part,
    const char *level, struct check_output *out)
{
	for (size_t i = 0; i < v->n_verdicts && out->n_annotations < CHECK_ANNOTATIONS_MAX; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		struct buf title = BUF_INIT(CHECK_TEXT_MAX_BYTES), message = BUF_INIT(CHECK_TEXT_MAX_BYTES);
		char *name;

		if (!is_red_of(w, accelerator, job, part) || !is_place(w))
			continue;
		name = full_test_name(w);
		escape_line(&title, name, TEST_CHARS);
		escape_line(&message, w->message && w->message[0] ? w->message : "failed", ANNOTATION_CHARS);
		*ARRAY_PUSH(out->annotations, out->n_annotations) = (struct check_annotation){.path = xstrdup(w->file),
		    .line = w->line,
		    .level = level,
		    .title = buf_detach(&title),
		    .message = buf_detach(&message)};
		free(name);
	}
}

/* ---- the whole text ---- */

static const char *const OPENINGS[] = {[END_RUNNING] = "The vendor's job is running.\n\n",
    [END_FAILED] = "",
    [END_UNHEALTHY] = ("This accelerator is red on most recent changes, whatever they are, and is "
		       "not counted until it recovers.\n\n"),
    [END_EXCUSED] = "",
    [END_CANCELLED] = "Called off before it reported.\n\n",
    [END_MISSED] = "The vendor gave no result, which is not the change's fault.\n\n",
    [END_PASSED] = "",
    [END_DONE] = "",
    [END_SKIPPED] = ""};

void check_describe_job(const struct change_view *v, size_t accelerator, const struct job_view *job, enum job_end end,
    const struct check_options *o, struct check_output *ret)
{
	const struct accelerator_view *a = &v->accelerators[accelerator];
	struct buf out = BUF_INIT(CHECK_TEXT_MAX_BYTES), url = BUF_INIT(CHECK_TEXT_MAX_BYTES);

	buf_append_str(&out, OPENINGS[end]);
	if (end != END_RUNNING) {
		bool fails = str_eq(ret->conclusion, "failure");

		for (int part = 0; part < N_PARTS; part++)
			append_part(&out, v, accelerator, job, (enum part)part, o);
		annotate(v, accelerator, job, PART_COUNTING, fails ? "failure" : "warning", ret);
		annotate(v, accelerator, job, PART_EXCUSED, "notice", ret);
	}
	struct buf help = BUF_INIT(CHECK_TEXT_MAX_BYTES);
	bool has_help = a->help_url && escape_url(&help, a->help_url, VENDOR_URL_BYTES, URL_HTTPS);

	escape_markdown_label(&out, a->title, LABEL_CHARS, MARKDOWN_TEXT);
	if (has_help)
		buf_appendf(&out, " · [contact](%s)", buf_str(&help));
	for (size_t i = 0; a->oncall && a->oncall[i] && i < ONCALLS_MAX; i++) {
		buf_append_str(&out, i ? ", " : " · on call ");
		escape_markdown_code(&out, a->oncall[i], LABEL_CHARS, MARKDOWN_TEXT);
	}
	buf_release(&help);
	if (own_url_append(&url, o->public_url, "jobs", job->id))
		buf_appendf(&out, " · [everything about this job](%s)", buf_str(&url));
	buf_clear(&url);
	if (job->url && escape_url(&url, job->url, VENDOR_URL_BYTES, URL_HTTPS))
		buf_appendf(&out, " · [vendor's run](%s)", buf_str(&url));
	if (end != END_RUNNING && end != END_PASSED) {
		buf_append_str(&out, "\n\nTo test again: Re-run");
		if (o->bot) {
			char *command = xasprintf("@%s retest %s", o->bot, a->name);

			buf_append_str(&out, ", or the comment ");
			escape_markdown_code(&out, command, 0, MARKDOWN_TEXT);
			free(command);
		}
		buf_append_char(&out, '\n');
	}
	buf_release(&url);
	ret->summary = buf_detach(&out);
}
