#include "report/dashboard_headline.h"

#include "base/escape.h"
#include "base/json.h"
#include "report/json_field.h"

enum { NAMED_MAX = 3, TITLE_MAX_CHARS = 40, TEXT_MAX_BYTES = 8192 };

static bool is_overdue(const struct dashboard_row *r)
{
	return r->at.state.is_overdue;
}

static bool is_unhealthy(const struct dashboard_row *r)
{
	return r->at.facts.is_unhealthy;
}

static bool is_silent(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_SILENT;
}

static bool is_without_report(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_NO_REPORT;
}

static bool is_stale(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_STALE;
}

static bool is_without_pass(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_NO_PASS;
}

static bool is_untested(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_UNTESTED;
}

static bool is_explained(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_EXPLAINED;
}

static bool is_green_but_by_night(const struct dashboard_row *r)
{
	return accelerator_status_is_green(r->at.state.status) &&
	       dashboard_bad_night(r) != DAY_NO_RUN;
}

/* One sentence of those of which it is true: "A and B are silent". */
struct sentence {
	bool (*is_in)(const struct dashboard_row *r);
	const char *one, *many;
};

static const struct sentence SENTENCES[] = {
    {is_overdue, "is overdue (more than 72 hours)", "are overdue (more than 72 hours)"},
    {is_unhealthy, "is unhealthy, so not counted", "are unhealthy, so not counted"},
    {is_silent, "is silent", "are silent"},
    {is_without_report, "let a deadline pass without a report",
	"let a deadline pass without a report"},
    {is_stale, "was not tested recently", "were not tested recently"},
    {is_without_pass, "ended its newest test without a pass",
	"ended their newest tests without a pass"},
    {is_untested, "is not tested yet", "are not tested yet"},
    {is_explained, "passes but for flaky tests or known issues",
	"pass but for flaky tests or known issues"},
    {is_green_but_by_night, "is green, but its newest periodic run is not",
	"are green, but their newest periodic runs are not"},
};
enum { N_SENTENCES = sizeof(SENTENCES) / sizeof(SENTENCES[0]) };

static size_t count(const struct dashboard *d, bool (*is_in)(const struct dashboard_row *r))
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		n += is_in(&d->rows[i]);
	return n;
}

/* "A", "A and B", "A, B and C", "5 accelerators" */
static void append_names(
    struct buf *out, const struct dashboard *d, bool (*is_in)(const struct dashboard_row *r))
{
	size_t n = count(d, is_in), i_name = 0;

	if (n > NAMED_MAX) {
		buf_appendf(out, "%zu accelerators", n);
		return;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		const struct dashboard_row *r = &d->rows[i];

		if (!is_in(r))
			continue;
		if (i_name > 0)
			buf_append_str(out, i_name == n - 1 ? " and " : ", ");
		escape_line(out, r->title && r->title[0] ? r->title : r->name, TITLE_MAX_CHARS);
		i_name++;
	}
}

static bool are_of_the_same(
    const struct dashboard *d, const struct sentence *a, const struct sentence *b)
{
	for (size_t i = 0; i < d->n_rows; i++)
		if (a->is_in(&d->rows[i]) != b->is_in(&d->rows[i]))
			return false;
	return true;
}

/* What is true of the same accelerators is one sentence: "A is overdue and is unhealthy". */
static void append_rest(struct buf *out, const struct dashboard *d)
{
	bool is_said[N_SENTENCES] = {false};

	for (size_t i = 0; i < N_SENTENCES; i++) {
		const struct sentence *s = &SENTENCES[i];
		size_t n = count(d, s->is_in), n_same = 0, n_put = 0;

		if (n == 0 || is_said[i])
			continue;
		for (size_t k = i; k < N_SENTENCES; k++)
			n_same += !is_said[k] && are_of_the_same(d, s, &SENTENCES[k]);
		buf_append_str(out, out->len ? "; " : "");
		append_names(out, d, s->is_in);
		for (size_t k = i; k < N_SENTENCES; k++) {
			if (is_said[k] || !are_of_the_same(d, s, &SENTENCES[k]))
				continue;
			buf_appendf(out, "%s %s",
			    n_put == 0            ? ""
			    : n_put == n_same - 1 ? " and"
						  : ",",
			    n == 1 ? SENTENCES[k].one : SENTENCES[k].many);
			is_said[k] = true;
			n_put++;
		}
	}
	if (out->len)
		buf_append_char(out, '.');
}

static bool is_red(const struct dashboard_row *r)
{
	return accelerator_status_is_red(r->at.state.status);
}

static bool is_all_green(const struct dashboard_row *r)
{
	return r->at.state.status == ACCELERATOR_GREEN;
}

static bool is_passing(const struct dashboard_row *r)
{
	return accelerator_status_is_green(r->at.state.status);
}

/* The state that lends the line its symbol and tone. */
static enum accelerator_status append_lead(
    struct buf *out, const struct dashboard *d, const char *branch)
{
	size_t n = d->n_rows, n_red = count(d, is_red);

	if (n_red) {
		buf_appendf(out, "%zu of %zu accelerator%s %s red on %s", n_red, n,
		    n == 1 ? "" : "s", n_red == 1 ? "is" : "are", branch);
		return ACCELERATOR_RED;
	}
	if (count(d, is_passing) == 0) {
		if (count(d, is_untested) == n)
			buf_appendf(out, "Nothing has been tested on %s yet", branch);
		else
			buf_appendf(out, "No accelerator is known to be green on %s", branch);
		return ACCELERATOR_UNTESTED;
	}
	if (count(d, is_all_green) < n)
		buf_appendf(out, "Nothing is known to be red on %s", branch);
	else if (n == 1)
		buf_appendf(out, "The one accelerator is green on %s", branch);
	else
		buf_appendf(out, "All %zu accelerators are green on %s", n, branch);
	return ACCELERATOR_GREEN;
}

json_t *dashboard_headline_json(const struct dashboard *d, const char *branch)
{
	struct buf text = BUF_INIT(TEXT_MAX_BYTES), rest = BUF_INIT(TEXT_MAX_BYTES);
	const struct accelerator_words *words = accelerator_words(append_lead(&text, d, branch));
	json_t *obj = json_object();

	if (count(d, is_untested) < d->n_rows)
		append_rest(&rest, d);
	json_set_str(obj, "symbol", words->symbol);
	json_set_str(obj, "tone", words->tone);
	json_set_foreign_text(obj, "text", buf_str(&text));
	json_set_foreign_text(obj, "rest", buf_str(&rest));
	buf_release(&text);
	buf_release(&rest);
	return obj;
}
