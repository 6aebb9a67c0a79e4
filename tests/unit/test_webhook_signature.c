#include <setjmp.h>

#include <cmocka.h>

#include "webhook/intake.h"

/* GitHub's own documented example. */
static const char secret[] = "It's a Secret to Everybody";
static const char body[] = "Hello, World!";
#define GOOD "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

static void test_accepts_githubs_example(void **state)
{
	struct hmac *h = hmac_new(secret, sizeof secret - 1);
	uint8_t signature[SHA256_BYTES];

	(void)state;
	assert_int_equal(signature_parse("sha256=" GOOD, signature), 0);
	assert_true(signature_is_good(h, body, sizeof body - 1, signature));
	assert_true(signature_is_good(h, body, sizeof body - 1, signature)); /* h is reusable */
	assert_false(signature_is_good(h, body, sizeof body - 2, signature));
	assert_false(signature_is_good(h, "", 0, signature));
	for (int i = 0; i < SHA256_BYTES; i++) {
		signature[i] ^= 1;
		assert_false(signature_is_good(h, body, sizeof body - 1, signature));
		signature[i] ^= 1;
	}
	hmac_free(h);
}

static void test_refuses_other_forms(void **state)
{
	static const char *const wrong[] = {
	    "",
	    "sha256=",
	    GOOD,
	    "sha1=" GOOD,
	    "SHA256=" GOOD,
	    "sha256= " GOOD,
	    "sha256=" GOOD " ",
	    "sha256=" GOOD "0",
	    "sha256=" GOOD "00",
	    "sha256=g" GOOD,
	    "sha256=x57107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1",
	};
	uint8_t signature[SHA256_BYTES];

	(void)state;
	assert_int_equal(signature_parse(NULL, signature), ERR_INVALID);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(signature_parse(wrong[i], signature), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accepts_githubs_example),
	    cmocka_unit_test(test_refuses_other_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
