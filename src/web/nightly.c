/* /api/v1/nightly and /nightly: tests × accelerators × days. */
#include "views/nightly.h"

#include "model/test_result.h"
#include "web/params.h"
#include "web/web_internal.h"

enum {
	DAYS_DEFAULT = 14,
	LIMIT_DEFAULT = 50,
	ITEMS_PER_TEST = 20, /* the work for a test, in entries of other answers */
	PART_BYTES = REPORT_NAME_MAX_BYTES + 1,
	ACCELERATOR_BYTES = 64,
	PLACE_BYTES = REPORT_SUITE_MAX_BYTES + 64,
};

#define DAY_MS INT64_C(86400000)

struct nightly_request {
	struct web_read read;
	struct get_nightly get;
	char accelerator[ACCELERATOR_BYTES], suite[REPORT_SUITE_MAX_BYTES + 1], part[PART_BYTES];
	char place[PLACE_BYTES], not_found[ACCELERATOR_BYTES + 40];
};

static void release_nightly(void *n) { nightly_view_free(((struct nightly_request *)n)->get.view); }

/* ---- the cursor: "STATE TEST SUITE" ---- */

static bool parse_place(char *text, struct nightly_place *ret)
{
	char *test = strchr(text, ' '), *suite = test ? strchr(test + 1, ' ') : NULL;
	int64_t state;

	if (!suite)
		return false;
	*test++ = '\0';
	*suite++ = '\0';
	ret->suite = suite;
	if (parse_int64(text, &state) || state < 0 || state >= N_HISTORY_STATES)
		return false;
	ret->state = (enum history_state)state;
	return parse_int64(test, &ret->test_id) == 0 && ret->test_id >= -1;
}

/* ---- the request ---- */

static void read_params(struct params *p, struct nightly_request *n)
{
	int64_t today_ms = clock_wall_ms();

	n->get.n_days = (int)params_int(p, "days", 1, NIGHTLY_DAYS_MAX, DAYS_DEFAULT);
	n->get.last_day = params_day(p, "until", today_ms) / DAY_MS;
	if (n->get.last_day < n->get.n_days) /* there are no days before 1970 */
		n->get.last_day = n->get.n_days;
	n->get.limit = (int)params_limit(p, LIMIT_DEFAULT);
	n->get.state = (enum history_state)params_word(p, "state", &history_state_words, HISTORY_NONE);
	n->get.accelerator = params_text(p, "accelerator", n->accelerator, sizeof(n->accelerator));
	n->get.suite = params_text(p, "suite", n->suite, sizeof(n->suite));
	n->get.part = params_text(p, "q", n->part, sizeof(n->part));
	if (params_cursor(p, n->place, sizeof(n->place)) && !parse_place(n->place, &n->get.after))
		params_wrong(p, "cursor", WRONG_CURSOR);
	snprintf(n->not_found, sizeof(n->not_found), "no accelerator is called %s", n->accelerator);
	n->read.not_found = n->not_found;
}

static char *make_nightly(void *owner)
{
	struct nightly_request *n = owner;

	return nightly_json(n->get.view, n->read.config->public_url);
}

static size_t count_nightly(const void *owner)
{
	const struct nightly_view *v = ((const struct nightly_request *)owner)->get.view;

	return v->n_accelerators * v->n_days + v->n_tests * ITEMS_PER_TEST;
}

static const struct web_read_kind NIGHTLY = {
    sizeof(struct nightly_request), release_nightly, .make_text = make_nightly, .n_items = count_nightly};

void web_on_nightly(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	struct nightly_request *n = web_read_new(owner, r, &NIGHTLY);

	if (!n)
		return;
	read_params(&p, n);
	if (!params_refuse_read(&p, n))
		web_read_await(n, store_get_nightly(n->read.store, &n->get));
}
