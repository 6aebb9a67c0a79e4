/* Which messages are the same failure, which are not, and which say nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "model/failure_text.h"

static void assert_normal(const char *message, const char *expected)
{
	char *once = failure_text_normalise(message), *twice = failure_text_normalise(once);

	assert_string_equal(once, expected);
	assert_string_equal(twice, expected);
	free(twice);
	free(once);
}

static void what_changes_from_run_to_run_goes(void **state)
{
	static const struct {
		const char *message, *normal;
	} CASES[] = {
	    {"expected 0.7071, got 0.7068", "expected N, got N"},
	    {"expected -1.5e-07, got +3", "expected N, got N"},
	    {"off by .5 at 1e5", "off by N at N"},
	    {"want 12_000 rows", "want N rows"},
	    {"ptr 0x7f2a9C001230 is null", "ptr N is null"},
	    {"bad commit 3288dc0", "bad commit N"},
	    {"bad commit 3288dc072a9fd7c79fff92a38e6b5e872dcecf92", "bad commit N"},
	    {"job 6f1c2d3e-aaaa-4bbb-8ccc-0123456789ab lost", "job N lost"},
	    {"No file /home/ci/work/_temp/x/ops.py", "No file ops.py"},
	    {"(/opt/hostedtoolcache/Python/lib/y.so: bad)", "(y.so: bad)"},
	    {"in ~/work/a/b.cpp", "in b.cpp"},
	    {"in C:\\temp\\a\\b.py", "in b.py"},
	    {"torch/nn/modules/conv.py:312: oops", "torch/nn/modules/conv.py:N: oops"},
	    {"https://ci.example.org/runs/123", "https://ci.example.org/runs/N"},
	    {"cannot open tmpk3x9a0qz", "cannot open tmpN"},
	    {"cannot open /tmp/tmp.Xa3bC9dEf1/x.log", "cannot open x.log"},
	    {"cannot open tmp.Xa3bC9dEf1", "cannot open tmp.N"},
	    {"at 2026-11-20T12:00:00.123Z", "at N-N-NTN:N:N"},
	    {"at 2026-11-20 12:00:00", "at N-N-N N:N:N"},
	    {"Fri Nov 20 12:00:01 watchdog", "N N N N:N:N watchdog"},
	    {"took 3.5 s", "took N"},
	    {"took 350ms", "took N"},
	    {"took 1h2m3s", "took N"},
	    {"Tried to map 20.00 MiB", "Tried to map N"},
	    {"device npu:3 hung", "device npu:N hung"},
	    {"npu3 hung", "npuN hung"},
	    {"[rank12]: hung", "[rankN]: hung"},
	    {"worker_17 and gw4 died of X", "worker_N and gwN died of X"},
	    {"thread-12 (pid 4711)", "thread-N (pid N)"},
	    {"ThreadPoolExecutor-0_0", "ThreadPoolExecutor-N"},
	    {"kernel_meta_1234567890_a1b2c3d4e5 missing", "kernel_meta_N_N missing"},
	    {"\033[31mE   KeyError\033[0m: x", "E KeyError : x"},
	    {"[31mE   KeyError[0m: x", "E KeyError : x"},
	    {"no \"a\" and no `b` and no \xe2\x80\x98"
	     "c\xe2\x80\x99",
		"no 'a' and no 'b' and no 'c'"},
	    {"  one\n\n two\tthree  ", "one two three"},
	    {"torch 2.10.0a0+git3288dc0", "torch N.NaN+git3288dc0"},
	    {"shape 3x224x224", "shape NxNxN"},
	    {"the 2nd of 3", "the N of N"},
	    {"", ""},
	    {"12 34", "N N"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
		assert_normal(CASES[i].message, CASES[i].normal);
}

static void what_names_the_failure_stays(void **state)
{
	static const char *const KEPT[] = {
	    "float16 is not float32",
	    "aten::conv2d_backward is not implemented",
	    "test_conv_2 and test_conv_3",
	    "bf16, int8, x86_64, llama3, gpt2, _ZN2at6native3addE",
	    "torch/_inductor/codegen/cpp.py",
	    "a/b and c / d",
	    "deadbeef",
	    "It broke in May, on Sun",
	    "Ger\xc3\xa4t weg",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(KEPT); i++)
		assert_normal(KEPT[i], KEPT[i]);
}

static void alike(void **state)
{
	static const char *const CASES[][2] = {
	    {"HCCL timeout on device 3 after 1800 s", "HCCL timeout on device 7 after 30 min"},
	    {"AssertionError: loss: expected 0.7071, got 0.7068",
		"AssertionError: loss: expected 1.25, got -3e-4"},
	    {"RuntimeError: kernel 0x7ffd12 faulted at 0x10",
		"RuntimeError:  kernel 0x7f0000 faulted at 0xdeadbeef"},
	    {"cannot load /home/a/x/libop.so", "cannot load /work/b/libop.so"},
	    {"cannot load '/home/a/x/libop.so'", "cannot load \"/var/libop.so\""},
	    {"missing op for npu:0 in rank 1", "missing op for npu:5 in rank 12"},
	    {"\033[1mmissing op Foo\033[0m", "missing op Foo"},
	    {"fetch of 3288dc0 from mirror refused", "fetch of 06987c5 from mirror refused"},
	    {"watchdog fired at 12:00:01", "watchdog fired at 23:59:59"},
	    {"watchdog fired Nov  5 12:00:01", "watchdog fired Dec 24 23:59:59"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		int64_t key = failure_text_key(CASES[i][0]);

		if (!key || key != failure_text_key(CASES[i][1]))
			fail_msg("not alike: %s | %s", CASES[i][0], CASES[i][1]);
	}
}

static void not_alike(void **state)
{
	static const char *const CASES[][2] = {
	    {"KeyError: 'foo'", "KeyError: 'bar'"},
	    {"expected float16, got float32", "expected float32, got float16"},
	    {"aten::conv2d is not implemented", "aten::conv3d is not implemented"},
	    {"RuntimeError: npu hung", "ValueError: npu hung"},
	    {"cannot load /a/libop.so", "cannot load /a/libfoo.so"},
	    {"test_conv_2 failed on Foo", "test_conv_3 failed on Foo"},
	    {"AttributeError: no attribute 'weight'", "AttributeError: no attribute 'bias'"},
	    {"HCCL timeout on device 3", "NCCL timeout on device 3"},
	    {"loss: expected 1, got 2", "loss: wanted 1, got 2"},
	    {"case differs: Foo", "case differs: foo"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		assert_int_not_equal(failure_text_key(CASES[i][0]), 0);
		assert_int_not_equal(failure_text_key(CASES[i][1]), 0);
		if (failure_text_key(CASES[i][0]) == failure_text_key(CASES[i][1]))
			fail_msg("alike: %s | %s", CASES[i][0], CASES[i][1]);
	}
}

static void what_fits_any_failure_is_generic(void **state)
{
	static const char *const CASES[] = {
	    "",
	    "   ",
	    "12",
	    "0x7ffe",
	    "Process completed with exit code 1",
	    "Process completed with exit code 1.",
	    "##[error]Process completed with exit code 137.",
	    "Killed",
	    "Terminated",
	    "Segmentation fault (core dumped)",
	    "Timeout",
	    "timed out after 3600s",
	    "Test timed out after 2 hours",
	    "the job ended with failure",
	    "the job ended with timed_out",
	    "the job ended with failure although no test in it is red",
	    "exit status 2",
	    "llama3.py exited with code 139",
	    "Command '['pytest', 'x.py']' returned non-zero exit status 1.",
	    "AssertionError",
	    "AssertionError:",
	    "RuntimeError",
	    "E   RuntimeError: error",
	    "torch.cuda.OutOfMemoryError",
	    "assert False",
	    "assert 3 == 4",
	    "AssertionError: assert False is not True",
	    "AssertionError: Tensor-likes are not close!",
	    "Tensor-likes are not close! Mismatched elements: 1 / 12 (8.3%) Greatest absolute"
	    " difference: 0.5 at index (3,) (up to 1e-05 allowed) Greatest relative difference: 1.0"
	    " at index (3,) (up to 1.3e-06 allowed)",
	    "AssertionError: expected 0.7071, got 0.7068",
	    "AssertionError: Scalars are not equal!\n\nExpected 3 but got 4.\nAbsolute difference: "
	    "1",
	    "AssertionError: Booleans mismatch: True is not False",
	    "AssertionError: The values for attribute 'shape' do not match: 3 != 4.",
	    "Object comparison failed: 3 != 4",
	    "Lists differ: [1, 2] != [1, 3]",
	    "assert result == expected",
	    "FAILED (failures=1)",
	    "1 failed, 30 passed, 2 skipped in 3.2s",
	    "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 1 / 12 "
	    "(8.3%)\n\nTo"
	    " execute this test, run the following from the base repo dir:\n    python"
	    " test/test_ops.py TestOps.test_add\n\nThis message can be suppressed by setting"
	    " PYTORCH_PRINT_REPRO_ON_FAILURE=0",
	    "IndexError: list index out of range",
	    "ZeroDivisionError: division by zero",
	    "CUDA error: an illegal memory access was encountered",
	    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1 GiB",
	    "NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60 GiB total capacity)",
	    "RuntimeError: NPU error, error code is 507015",
	    "XPU error: unspecified launch failure",
	    "Error: something went wrong",
	    "Timeout after 600 s waiting for worker 3",
	    "See https://ci.vendor.example/logs/123 for details",
	    "https://ci.vendor.example/job/llama/123: failed",
	    "make: *** [Makefile:12: all] Error 2",
	    "ninja: build stopped: subcommand failed.",
	    "unknown error",
	    "did not start within 2h",
	    "did not finish within 6h",
	    "not acknowledged within 10m",
	    "taken by a machine 3 times and never reported back; the last was npu-17",
	    "handed back by npu-17: drained",
	};

	(void)state;
	assert_true(failure_text_is_generic(NULL));
	assert_int_equal(failure_text_key(NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		if (!failure_text_is_generic(CASES[i]))
			fail_msg("specific: %s", CASES[i]);
		assert_int_equal(failure_text_key(CASES[i]), 0);
	}
}

static void what_says_something_is_not(void **state)
{
	static const char *const CASES[] = {
	    "AssertionError: loss: expected 0.7071, got 0.7068",
	    "KeyError: 'foo'",
	    "HCCL timeout on device 3",
	    "layer3.weight: Tensor-likes are not close!",
	    "RuntimeError: aten::foo is not implemented",
	    "Connection reset by peer",
	    "https://huggingface.example/llama3: certificate has expired",
	    "No space left on device",
	    "\xe5\xa4\xb1\xe8\xb4\xa5",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
		if (failure_text_is_generic(CASES[i]))
			fail_msg("generic: %s", CASES[i]);
}

/* From test/ or from the root, it is the same failure. */
static void how_to_run_it_is_no_part_of_it(void **state)
{
	(void)state;
	assert_normal(
	    "aten::foo is missing\n\nTo execute this test, run the following from the base"
	    " repo dir:\n    python test/test_ops.py TestOps.test_foo",
	    "aten::foo is missing");
}

static void a_long_message_is_cut_between_words(void **state)
{
	char *message = xmalloc(2001), *once, *twice;

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		message[i] = "op deadbeef12g "[i % 15];
	message[2000] = '\0';
	once = failure_text_normalise(message);
	twice = failure_text_normalise(once);
	assert_in_range(strlen(once), 490, 512);
	assert_string_equal(once, twice);
	free(once);
	free(twice);
	memset(message, 'x', 2000); /* a blob */
	assert_normal(message, "N");
	free(message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_changes_from_run_to_run_goes),
	    cmocka_unit_test(what_names_the_failure_stays),
	    cmocka_unit_test(alike),
	    cmocka_unit_test(not_alike),
	    cmocka_unit_test(what_fits_any_failure_is_generic),
	    cmocka_unit_test(what_says_something_is_not),
	    cmocka_unit_test(how_to_run_it_is_no_part_of_it),
	    cmocka_unit_test(a_long_message_is_cut_between_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
