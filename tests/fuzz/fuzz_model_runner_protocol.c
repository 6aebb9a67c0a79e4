/* The four messages between outpost-runner and outpostd: a message that is accepted and written is accepted again and
 * written in the same way. */

#include "model/runner_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_claim(const char *text, size_t n)
{
	struct claim_request a, b;
	char *first, *second;

	if (claim_request_parse(text, n, &a, NULL))
		return;
	first = claim_request_text(&a);
	assert(claim_request_parse(first, strlen(first), &b, NULL) == 0);
	second = claim_request_text(&b);
	assert(str_eq(first, second));
	free(first);
	free(second);
	claim_request_release(&a);
	claim_request_release(&b);
}

static void check_offer(const char *text, size_t n)
{
	struct lease_offer a, b;
	char *first, *second;

	if (lease_offer_parse(text, n, &a, NULL))
		return;
	assert(is_sha1(a.head_sha) && !strchr(a.lease_id, '/') && a.attempt > 0);
	first = lease_offer_text(&a);
	assert(lease_offer_parse(first, strlen(first), &b, NULL) == 0);
	second = lease_offer_text(&b);
	assert(str_eq(first, second));
	free(first);
	free(second);
	first = lease_offer_change_text(&a);
	free(first);
	lease_offer_release(&a);
	lease_offer_release(&b);
}

static void check_answer(const char *text, size_t n)
{
	struct lease_answer a, b;
	char *first, *second;

	if (lease_answer_parse(text, n, &a, NULL))
		return;
	first = lease_answer_text(&a);
	assert(lease_answer_parse(first, strlen(first), &b, NULL) == 0);
	second = lease_answer_text(&b);
	assert(str_eq(first, second));
	free(first);
	free(second);
	lease_answer_release(&a);
	lease_answer_release(&b);
}

static void check_status(const char *text, size_t n)
{
	struct runner_status a, b;
	char *first, *second;

	if (runner_status_parse(text, n, &a, NULL))
		return;
	first = runner_status_text(&a);
	assert(runner_status_parse(first, strlen(first), &b, NULL) == 0);
	second = runner_status_text(&b);
	assert(str_eq(first, second));
	free(first);
	free(second);
	runner_status_release(&a);
	runner_status_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_status((const char *)data, n);
	check_claim((const char *)data, n);
	check_offer((const char *)data, n);
	check_answer((const char *)data, n);
	return 0;
}
