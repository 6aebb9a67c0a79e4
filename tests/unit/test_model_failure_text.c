/* Which failures are the same, which differ, which messages are too general to compare, and which a machine causes. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/failure_text.h"
#include "model/test_result.h"

#define MARKS_SUM UINT64_C(0x6ff4d59bac43ba54)

static void assert_normal(const char *message, const char *expected)
{
	char *once = failure_text_normalise(message), *twice = failure_text_normalise(once);

	assert_string_equal(once, expected);
	assert_string_equal(twice, expected);
	free(twice);
	free(once);
}

static struct failure_mark mark_of(const char *message)
{
	struct failure_text t = {.message = message, .suite = "unit", .test = "test_it", .dtype = ""};

	return failure_mark(TEST_FAIL, &t);
}

static void details_that_change_from_run_to_run_are_dropped(void **state)
{
	static const struct {
		const char *message, *normal;
	} CASES[] = {
	    {"expected 0.7071, got 0.7068", "expected N, got N"},
	    {"expected -1.5e-07, got +3", "expected N, got N"},
	    {"1e-3s and 2.5E+10f", "N and N"},
	    {"1e-7ode4", "N-NodeN"}, /* not Node4, which would become NodeN */
	    {"x_99999ode5 and x_99999ode_5", "x_NodeN and x_Node_N"},
	    {"[;/x/m and [1;31mred[m", "[;m and red[m"},
	    {"abcdefab-/x/abcd-abcd-abcd-abcdefabcdef", "abcdefab-/x/abcd-abcd-abcd-abcdefabcdef"},
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

static void details_that_identify_the_failure_stay(void **state)
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

static void equal_failures_compare_equal(void **state)
{
	static const char *const CASES[][2] = {
	    {"HCCL timeout on device 3 after 1800 s", "HCCL timeout on device 7 after 30 min"},
	    {"AssertionError: loss: expected 0.7071, got 0.7068", "AssertionError: loss: expected 1.25, got -3e-4"},
	    {"RuntimeError: kernel 0x7ffd12 faulted at 0x10", "RuntimeError:  kernel 0x7f0000 faulted at 0xdeadbeef"},
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
		struct failure_mark a = mark_of(CASES[i][0]), b = mark_of(CASES[i][1]);

		if (!failure_marks_are_alike(&a, &b))
			fail_msg("not alike: %s | %s", CASES[i][0], CASES[i][1]);
	}
}

static void different_failures_compare_different(void **state)
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
		struct failure_mark a = mark_of(CASES[i][0]), b = mark_of(CASES[i][1]);

		assert_false(a.is_general);
		assert_false(b.is_general);
		if (failure_marks_are_alike(&a, &b))
			fail_msg("alike: %s | %s", CASES[i][0], CASES[i][1]);
	}
}

static void text_that_fits_any_failure_is_general(void **state)
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
	assert_true(failure_text_is_general(NULL));
	assert_true(mark_of(NULL).is_general);
	assert_int_equal(mark_of(NULL).key, 0);
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
		if (!mark_of(CASES[i]).is_general)
			fail_msg("not general: %s", CASES[i]);
	assert_int_not_equal(mark_of("Killed").key, 0); /* the comparison still finds them equal */
	assert_int_not_equal(mark_of("Killed").key, mark_of("Timeout").key);
}

static void specific_text_is_not_general(void **state)
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
		if (mark_of(CASES[i]).is_general)
			fail_msg("general: %s", CASES[i]);
}

/* The failure is the same when run from test/ or from the root. */
static void instructions_to_run_a_test_are_ignored(void **state)
{
	(void)state;
	assert_normal("aten::foo is missing\n\nTo execute this test, run the following from the base"
		      " repo dir:\n    python test/test_ops.py TestOps.test_foo",
	    "aten::foo is missing");
	assert_normal("missing\n\nTo\texecute this test, run\nthe following from the base repo dir: x", "missing");
}

/* PyTorch's messages differ at their end: 512 equal bytes do not make a message equal. */
static void the_end_of_a_message_counts(void **state)
{
	char long_one[700], other[700];

	(void)state;
	memset(long_one, 0, sizeof(long_one));
	for (size_t i = 0; i < 100; i++)
		memcpy(long_one + 6 * i, "aten: ", 6);
	memcpy(other, long_one, sizeof(other));
	memcpy(long_one + 600, "conv2d", 6);
	memcpy(other + 600, "matmul", 6);
	assert_int_not_equal(mark_of(long_one).key, mark_of(other).key);
}

/* The rest of the message is unknown: another failure may begin in the same way. */
/* Finding 9: a second cause behind the first 4 kB, or behind the line that names the exception */
static void truncated_text_is_alike_but_never_the_same(void **state)
{
	static char message[REPORT_MESSAGE_MAX_BYTES], trace[REPORT_TRACE_MAX_BYTES + 1];
	struct failure_text t = {.suite = "test_nn", .test = "test_add", .dtype = ""};
	struct failure_mark a;

	(void)state;
	memset(message, 'x', sizeof(message) - 1);
	for (size_t i = 5; i < sizeof(message) - 1; i += 6)
		message[i] = ' ';
	t.message = message;
	a = failure_mark(TEST_FAIL, &t);
	assert_true(a.is_cut);
	assert_true(failure_marks_are_alike(&a, &a)); /* it is counted all the same */
	assert_false(failure_marks_are_same(&a, &a));
	message[900] = '\0';
	a = failure_mark(TEST_FAIL, &t);
	assert_false(a.is_cut);
	assert_true(failure_marks_are_same(&a, &a));
	memset(trace, ' ', sizeof(trace) - 1);
	memcpy(trace, "KeyError: 'weight'\n", 19);
	t.trace = trace;
	a = failure_mark(TEST_FAIL, &t);
	assert_true(a.is_cut);
	assert_true(a.is_general);
}

/* Finding 23 */
static void numbers_that_are_compared(void **state)
{
	static const struct {
		const char *a, *b;
		bool is_same;
	} CASES[] = {
	    {"Scalars are not equal!\n\nExpected 4 but got 6.\n", "Scalars are not equal!\n\nExpected 4 but got 7.\n",
		false},
	    {"assert count == 3", "assert count == 4", false},
	    {"3 != 4: sizes of foo", "3 != 5: sizes of foo", false},
	    {"expected shape [2, 3], got [2, 4]", "expected shape [2, 3], got [2, 5]", false},
	    {"got torch.Size([2, 4])", "got torch.Size([2, 4])", true},
	    {"HCCL timeout on device 3 after 1800 s", "HCCL timeout on device 7 after 30 s", true},
	    {"loss: expected 0.7071, got 0.7068", "loss: expected 1.25, got 0.1", true},
	    {"[PID: 12] aclnnFoo failed at 12:01", "[PID: 99] aclnnFoo failed at 12:59", true},
	    {"Mismatched elements: 1 / 12 (8.3%) of foo", "Mismatched elements: 2 / 12 (9.3%) of foo", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct failure_mark a = mark_of(CASES[i].a), b = mark_of(CASES[i].b);

		assert_true(failure_marks_are_alike(&a, &b));
		if (failure_marks_are_same(&a, &b) != CASES[i].is_same)
			fail_msg("%s | %s", CASES[i].a, CASES[i].b);
	}
}

static void all_that_the_last_exception_says_counts(void **state)
{
	static const char *const TRACES[] = {
	    "LoweringException: AssertionError: \n  File \"/opt/graph.py\", line 1348, in call\n"
	    "    out = lowerings[target]()\n  target: aten.upsample_bicubic2d.vec\n",
	    "LoweringException: AssertionError: \n  File \"/opt/graph.py\", line 1348, in call\n"
	    "    out = lowerings[target]()\n  target: aten.index.Tensor\n",
	    "LoweringException: AssertionError: \n  File \"/opt/graph.py\", line 12, in call\n"
	    "    out = other(target)\n  target: aten.index.Tensor\n---- Captured stdout call "
	    "----\nx\n",
	};
	struct failure_text t = {
	    .message = "backend='inductor' raised:", .suite = "test_nn", .test = "test_add", .dtype = ""};
	struct failure_mark marks[ARRAY_LEN(TRACES)];
	char *text = failure_trace_exception(TRACES[2]);

	(void)state;
	assert_string_equal(text, "LoweringException: AssertionError: \ntarget: aten.index.Tensor");
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(TRACES); i++) {
		t.trace = TRACES[i];
		marks[i] = failure_mark(TEST_FAIL, &t);
	}
	assert_false(failure_marks_are_same(&marks[0], &marks[1]));
	assert_true(failure_marks_are_same(&marks[1], &marks[2]));
	/* the instructions to run a test do not hide its exception */
	t.message = "it failed\n\nTo execute this test, run the following from the base repo dir: x";
	for (size_t i = 0; i < 2; i++) {
		t.trace = TRACES[i];
		marks[i] = failure_mark(TEST_FAIL, &t);
	}
	assert_false(failure_marks_are_same(&marks[0], &marks[1]));
}

static void a_message_that_was_cut_is_general(void **state)
{
	char text[1025];

	(void)state;
	for (size_t i = 0; i < 1024; i++)
		text[i] = "conv2d "[i % 7];
	text[1024] = '\0';
	assert_true(mark_of(text).is_general);
	text[600] = '\0';
	assert_false(mark_of(text).is_general);
}

static void assert_without_name(const char *test, const char *dtype, const char *text, const char *expected)
{
	struct failure_text t = {.suite = "test/test_nn.py", .test = test, .dtype = dtype};
	char *is = failure_text_without_name(text, &t);

	assert_string_equal(is, expected);
	free(is);
}

static void the_name_of_the_test_is_ignored(void **state)
{
	(void)state;
	assert_without_name("TestNN.test_add", "", "TestNN.test_add raised X", "T raised X");
	assert_without_name("test_add", "float32",
	    "worker 'gw3' crashed while running 'test/test_nn.py::TestNN::test_add[cuda-float32]'",
	    "worker 'gw3' crashed while running 'T'");
	assert_without_name("TestNNCUDA.test_add_cuda_float32", "", "TestNN test_add: test_add_npu_bfloat16", "T T: T");
	assert_without_name("test_add[2-shape1]", "", "FAILED test_add[2-shape1] - no", "FAILED T - no");
	assert_without_name("test_add", "", "(TestNN.test_add)", "(T)");
	assert_without_name("test_add", "", "test_add_out is another one", "test_add_out is another one");
	assert_without_name("add", "", "add is a word like others", "add is a word like others");
	assert_without_name("test_add", "", "unbalanced test_add[ here", "unbalanced T[ here");
	assert_without_name("test_add", "", "at:test_add: no", "at:T: no");
	assert_without_name("", "", "nothing to take out", "nothing to take out");
}

static void a_trace_says_more_than_the_message(void **state)
{
	static const char PYTHON[] = "Traceback (most recent call last):\n"
				     "  File \"/opt/x/test_nn.py\", line 12, in test_add\n    f(x)\n"
				     "  File \"/opt/x/torch/nn/functional.py\", line 1471, in relu\n    raise Foo\n"
				     "torch._dynamo.exc.Unsupported: call_function relu\n";
	static const char PYTEST[] = "test/test_nn.py:12: in test_add\n    f(x)\n"
				     "torch/nn/functional.py:99: in relu\n    g()\nE   KeyError: 'weight'\n";
	static const char IN_TEST[] = "  File \"/opt/x/test_nn.py\", line 12, in test_add\nValueError: no\n";
	struct failure_text t = {.message = "it failed", .suite = "test_nn", .test = "test_add", .dtype = ""};
	struct failure_mark a, b;
	char *text;

	(void)state;
	text = failure_trace_exception(PYTHON);
	assert_string_equal(text, "torch._dynamo.exc.Unsupported: call_function relu");
	free(text);
	text = failure_trace_exception(PYTEST);
	assert_string_equal(text, "KeyError: 'weight'");
	free(text);
	text = failure_trace_place(PYTHON, &t);
	assert_string_equal(text, "functional.py relu");
	free(text);
	text = failure_trace_place(PYTEST, &t);
	assert_string_equal(text, "functional.py relu");
	free(text);
	assert_null(failure_trace_place(IN_TEST, &t));
	assert_null(failure_trace_place(NULL, &t));
	assert_null(failure_trace_exception(NULL));
	assert_null(failure_trace_exception("no exception\n\nhere"));
	a = failure_mark(TEST_FAIL, &t);
	assert_true(a.is_general);
	t.trace = PYTHON;
	a = failure_mark(TEST_FAIL, &t);
	assert_false(a.is_general);
	t.trace = PYTEST;
	b = failure_mark(TEST_FAIL, &t);
	assert_false(failure_marks_are_alike(&a, &b));
	t.trace =
	    "/home/ci/torch/nn/functional.py:171: in relu\nE KeyError: 'weight'"; /* another line, another folder */
	a = failure_mark(TEST_FAIL, &t);
	assert_true(failure_marks_are_alike(&a, &b));
	a = failure_mark(TEST_ERROR, &t);
	assert_false(failure_marks_are_alike(&a, &b));
}

/* A test's own message is general if only the test's name was specific. */
static void own_name_makes_nothing_specific(void **state)
{
	struct failure_text t = {.message = "test_add_cuda failed", .suite = "unit", .test = "test_add", .dtype = ""};
	struct failure_text u = {.message = "test_mul_cuda failed", .suite = "unit", .test = "test_mul", .dtype = ""};
	struct failure_mark a = failure_mark(TEST_FAIL, &t), b = failure_mark(TEST_FAIL, &u);

	(void)state;
	assert_true(a.is_general);
	assert_true(failure_marks_are_alike(&a, &b));
}

static void machines_and_harnesses_that_fail(void **state)
{
	static const char *const THEIRS[] = {"RuntimeError: No HIP GPUs are available",
	    "RuntimeError: No XPU devices are available.", "OSError: [Errno 28] No space left on device", "Killed",
	    "Killed.", "Connection reset by peer", "CUDA out of memory. Tried to allocate 20.00 MiB",
	    "device 3 of npu-7 lost: ECC error at 0x7f", "Process completed with exit code 137",
	    "Error: The operation was canceled.", "Temporary failure in name resolution",
	    "node down: Not properly terminated", "rdma: no device found, tried 3 times", "std::bad_alloc"};
	static const char *const OWN[] = {"AssertionError: Tensor-likes are not close!", "Timeout",
	    "KeyError: 'device'", "Killed the wrong process", "expected device npu, got cpu",
	    "worker 'gw3' crashed while running 'test_x'", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(THEIRS); i++)
		if (!mark_of(THEIRS[i]).is_infrastructure)
			fail_msg("not infrastructure: %s", THEIRS[i]);
	for (size_t i = 0; i < ARRAY_LEN(OWN); i++)
		if (mark_of(OWN[i]).is_infrastructure)
			fail_msg("infrastructure: %s", OWN[i]);
	assert_false(failure_text_is_infrastructure(NULL));
}

static void a_blob_does_not_count_as_a_word(void **state)
{
	char *message = xmalloc(9001), *once, *twice;

	(void)state;
	for (size_t i = 0; i < 9000; i++)
		message[i] = "op deadbeef12g "[i % 15];
	message[9000] = '\0';
	once = failure_text_normalise(message);
	twice = failure_text_normalise(once);
	assert_in_range(strlen(once), 4070, 4096);
	assert_string_equal(once, twice);
	free(once);
	free(twice);
	memset(message, 'x', 9000);
	assert_normal(message, "N");
	free(message);
}

/* Stored marks have a version. If this test fails because a rule has changed, raise FAILURE_MARK_VERSION and correct the sum. */
static void a_stored_mark_is_the_same_in_this_version(void **state)
{
	static const char *const MESSAGES[] = {
	    "AssertionError: Tensor-likes are not close! Greatest difference 0.25 at (1, 2)",
	    "CUDA error: out of memory", "worker 7 crashed at 0x7f2a9C001230", "Timeout >60.0s", "expected 4, got 7",
	    "x", "No space left on device"};
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(MESSAGES); i++) {
		struct failure_mark mark = mark_of(MESSAGES[i]), read;
		uint8_t bytes[FAILURE_MARK_BYTES];

		failure_mark_put(&mark, bytes);
		assert_true(failure_mark_get(bytes, sizeof(bytes), TEST_FAIL, &read));
		assert_true(failure_marks_are_alike(&mark, &read) && mark.numbers == read.numbers);
		assert_true(mark.is_cut == read.is_cut && mark.is_general == read.is_general);
		assert_int_equal(mark.is_infrastructure, read.is_infrastructure);
		for (size_t k = 0; k < sizeof(bytes); k++)
			sum = sum * 31 + bytes[k];
		bytes[0]++;
		assert_false(failure_mark_get(bytes, sizeof(bytes), TEST_FAIL, &read));
		assert_false(failure_mark_get(bytes, sizeof(bytes) - 1, TEST_FAIL, &read));
	}
	assert_false(failure_mark_get(NULL, 0, TEST_FAIL, &(struct failure_mark){.key = 0}));
	assert_int_equal(sum, MARKS_SUM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(details_that_change_from_run_to_run_are_dropped),
	    cmocka_unit_test(details_that_identify_the_failure_stay),
	    cmocka_unit_test(equal_failures_compare_equal),
	    cmocka_unit_test(different_failures_compare_different),
	    cmocka_unit_test(text_that_fits_any_failure_is_general),
	    cmocka_unit_test(specific_text_is_not_general),
	    cmocka_unit_test(instructions_to_run_a_test_are_ignored),
	    cmocka_unit_test(the_end_of_a_message_counts),
	    cmocka_unit_test(a_message_that_was_cut_is_general),
	    cmocka_unit_test(truncated_text_is_alike_but_never_the_same),
	    cmocka_unit_test(numbers_that_are_compared),
	    cmocka_unit_test(all_that_the_last_exception_says_counts),
	    cmocka_unit_test(the_name_of_the_test_is_ignored),
	    cmocka_unit_test(a_trace_says_more_than_the_message),
	    cmocka_unit_test(own_name_makes_nothing_specific),
	    cmocka_unit_test(machines_and_harnesses_that_fail),
	    cmocka_unit_test(a_blob_does_not_count_as_a_word),
	    cmocka_unit_test(a_stored_mark_is_the_same_in_this_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
