/* `platform:` of accelerators.d/NAME.yml: the result of valid text, and the messages for a vendor who writes it for
 * the first time. */
#include "config_folder.h"

#define HEAD  "name: npu\ntitle: NPU\nlevel: L3\nrunners: [{name: ci, github: {repository: o/r}}]\n"
/* lines 5 to 8, the entry of install in line 9 */
#define BLOCK "platform:\n  integration: in-tree\n  device: npu\n  summary: A chip.\n"
#define INSTALL                                                                                                        \
	"  install:\n  - {build: nightly, os: linux, package: pip, commands: [pip install "                            \
	"torch]}\n"

static int setup(void **state)
{
	folder_setup(state);
	folder_write("outpost.yml", MINIMAL_YML "accelerators: {directory: a.d}\n");
	mkdir("a.d", 0700);
	return 0;
}

static struct config *load(const char *block)
{
	char *text = xasprintf("%s%s", HEAD, block);

	folder_write("a.d/npu.yml", text);
	free(text);
	return folder_load();
}

static void test_minimal_platform(void **state)
{
	struct config *c = load(BLOCK INSTALL);
	const struct platform *p = c->accelerators[0].platform;

	(void)state;
	assert_int_equal(p->integration, PLATFORM_IN_TREE);
	assert_string_equal(p->device, "npu");
	assert_string_equal(p->summary, "A chip.");
	assert_false(p->is_example);
	assert_int_equal(p->max_age_ms, INT64_C(14) * 86400000);
	assert_null(p->extension_package);
	assert_null(p->versions[0]);
	assert_int_equal(p->n_installs, 1);
	assert_int_equal(p->installs[0].build, BUILD_NIGHTLY);
	assert_null(p->installs[0].torch);
	assert_null(p->installs[0].version);
	assert_int_equal(p->installs[0].language, LANGUAGE_PYTHON);
	assert_string_equal(p->installs[0].commands[0], "pip install torch");
	assert_int_equal(p->n_steps, 0);
	assert_null(p->start_code);
	assert_int_equal(p->n_help, 0);
	config_unref(c);
}

static void test_full_platform(void **state)
{
	struct config *c = load("platform:\n"
				"  integration: out-of-tree\n  device: npu\n  summary: A <b>chip</b>.\n"
				"  example: true\n  max_age: 3d\n"
				"  extension: {package: torch-npu, import: torch_npu, url: https://x.example}\n"
				"  install:\n"
				"  - {build: stable, torch: '2.9.1', os: [windows, linux], package: [pip, libtorch],\n"
				"     platform: [CANN 8.2, CANN 8.1], commands: \"a\\nb\\n\", note: \"n\\n\"}\n"
				"  - {build: nightly, os: linux, package: source, language: [python, cpp],\n"
				"     commands: make}\n"
				"  prepare: [{title: T, text: \"one\\ntwo\", commands: [c], url: https://u.example}]\n"
				"  get_started: {text: t, code: \"import torch\\nfrom torch_npu import x\\n\"}\n"
				"  help: [{title: H, url: https://h.example}]\n");
	const struct platform *p = c->accelerators[0].platform;

	(void)state;
	assert_true(p->is_example);
	assert_string_equal(p->extension_import, "torch_npu");
	assert_false(p->is_autoloaded);
	assert_int_equal(strv_len((const char *const *)p->versions), 2);
	assert_string_equal(p->versions[0], "CANN 8.2");
	/* 2 systems × 2 packages × 2 versions, and 2 languages for each version */
	assert_int_equal(p->n_installs, 12);
	assert_int_equal(p->installs[0].os, OS_LINUX);
	assert_int_equal(p->installs[0].package, PACKAGE_PIP);
	assert_string_equal(p->installs[0].version, "CANN 8.2");
	assert_int_equal(p->installs[0].language, LANGUAGE_PYTHON);
	assert_string_equal(p->installs[0].commands[1], "b");
	assert_null(p->installs[0].commands[2]);
	assert_string_equal(p->installs[0].note, "n");
	assert_int_equal(p->installs[2].package, PACKAGE_LIBTORCH);
	assert_int_equal(p->installs[2].language, LANGUAGE_CPP);
	assert_int_equal(p->installs[4].os, OS_WINDOWS);
	assert_string_equal(p->installs[11].version, "CANN 8.1");
	assert_int_equal(p->installs[11].language, LANGUAGE_CPP);
	assert_string_equal(p->steps[0].text, "one\ntwo");
	assert_string_equal(p->start_code, "import torch\nfrom torch_npu import x");
	assert_string_equal(p->help[0].url, "https://h.example");
	config_unref(c);
}

static void test_autoload_needs_no_import(void **state)
{
	(void)state;
	config_unref(load(
	    "platform:\n  integration: out-of-tree\n  device: npu\n  summary: s\n"
	    "  extension: {package: torch-npu, autoload: true}\n" INSTALL "  get_started: {code: 'x.to(\"npu\")'}\n"));
	/* a check that does not touch the device needs no import either */
	config_unref(load("platform:\n  integration: out-of-tree\n  device: npu\n  summary: s\n"
			  "  extension: {package: torch-npu, import: torch_npu}\n" INSTALL
			  "  get_started: {code: 'print(torch.__version__, input_npu)'}\n"));
}

#define OF "a.d/npu.yml:"
#define OUT_OF_TREE                                                                                                    \
	"platform:\n  integration: out-of-tree\n  device: npu\n  summary: s\n"                                         \
	"  extension: {package: torch-npu, import: torch_npu}\n" INSTALL

static const struct {
	const char *block, *expected;
} WRONG[] = {
    {"platform: x\n", OF "5: platform must be a map, not \"x\"\n"},
    {"platform:\n", OF "5: missing key \"platform.integration\"\n" OF "5: missing key \"platform.device\"\n" OF
		       "5: missing key \"platform.summary\"\n" OF
		       "5: platform.install needs at least one way to install it: build, os, "
		       "package and commands\n"},
    {BLOCK "  install: []\n", OF "9: platform.install needs at least one way to install it: build, "
				 "os, package and commands\n"},
    {BLOCK INSTALL "  instal: []\n", OF "11: unknown key \"instal\" in platform; did you mean \"install\"?\n"},
    {BLOCK "  install:\n  - {}\n",
	OF "10: missing key \"platform.install.build\"\n" OF "10: missing key \"platform.install.os\"\n" OF
	   "10: missing key \"platform.install.package\"\n" OF "10: missing key \"platform.install.commands\"\n"},
    {BLOCK "  install:\n  - pip install torch\n", OF "10: platform.install must be a map, not text\n"},
    {BLOCK "  install: pip install torch\n", OF "9: platform.install must be a list, not \"pip install torch\"\n"},
    {BLOCK "  install:\n  - {build: stabel, os: linus, package: wheel, commands: []}\n",
	OF "10: platform.install.build must be one of stable, nightly, not \"stabel\"\n" OF
	   "10: platform.install.os must be one of linux, macos, windows, not \"linus\"\n" OF
	   "10: platform.install.package must be one of pip, conda, libtorch, docker, source, not "
	   "\"wheel\"\n" OF "10: platform.install.commands must not be empty\n"},
    {BLOCK "  install:\n  - {build: stable, os: linux, package: pip, commands: [x]}\n",
	OF "10: platform.install: a stable build names its release of PyTorch, as torch: "
	   "\"2.9.1\"\n"},
    {BLOCK "  install:\n  - {build: nightly, torch: 2.9.1, os: linux, package: pip, commands: "
	   "[x]}\n",
	OF "10: platform.install.torch goes with build: stable; a nightly is always the newest\n"},
    {BLOCK "  install:\n  - {build: stable, torch: 2.9.1+cpu, os: linux, package: pip, commands: "
	   "[x]}\n",
	OF "10: platform.install.torch must be a release of PyTorch such as \"2.9.1\", not "
	   "\"2.9.1+cpu\"\n" OF "10: platform.install: a stable build names its release of PyTorch, as torch: "
	   "\"2.9.1\"\n"},
    {BLOCK "  install:\n  - {build: nightly, os: [], package: pip, commands: [\"a\\u202eb\"]}\n",
	OF "10: platform.install.os must not be empty\n" OF
	   "10: platform.install.commands must be one line without control or invisible "
	   "characters, not "
	   "\"a\ufffdb\"\n"},
    {BLOCK "  install:\n  - {build: nightly, os: linux, package: libtorch, language: python, "
	   "commands: [x]}\n",
	OF "10: platform.install: libtorch is for C++: language must be cpp\n"},
    {BLOCK INSTALL "  - {build: nightly, os: [macos, linux], package: pip,\n     commands: [x]}\n",
	OF "11: platform.install has nightly, linux, pip, python twice; the first is in line "
	   "10\n"},
    {BLOCK "  versions: [CUDA 12.8, CUDA 12.6]\n  install:\n  - {build: stable, torch: 2.9.1, os: "
	   "linux, package: pip, platform: CUDA 12.9, commands: [x]}\n",
	OF "11: platform.install.platform must be one of platform.versions, not \"CUDA 12.9\"; did "
	   "you mean \"CUDA 12.8\"?\n"},
    {BLOCK "  device: NPU:0\n" INSTALL, OF "9: key \"device\" is given twice; the first is in line 7\n"},
    {"platform:\n  integration: in tree\n  device: NPU:0\n  summary: \"a\\nb\"\n  example: yes\n  "
     "max_age: 1h\n" INSTALL,
	OF "6: platform.integration must be one of in-tree, out-of-tree, not \"in tree\"\n" OF
	   "7: platform.device must be what torch.device() takes, as cuda or npu, without an "
	   "index, not \"NPU:0\"\n" OF
	   "8: platform.summary must be one line without control characters, not \"a?b\"\n" OF
	   "9: platform.example must be true or false, not \"yes\"\n" OF
	   "10: platform.max_age must be a duration from 1d to 365d (500ms, 30s, 10m, 6h, 30d), "
	   "not \"1h\"\n"},
    {"platform:\n  integration: out-of-tree\n  device: npu\n  summary: s\n" INSTALL,
	OF "5: platform.extension is missing: out-of-tree means that a package comes on top of "
	   "PyTorch; name it\n"},
    {BLOCK INSTALL "  extension: {package: torch npu}\n",
	OF "11: platform.extension.package must be the name of one package, as torch-npu, not "
	   "\"torch npu\"\n"},
    {BLOCK INSTALL "  extension: {package: torch-npu}\n",
	OF "11: platform.extension needs import, the module that programs import, or autoload: "
	   "true if PyTorch loads it by itself\n"},
    {BLOCK INSTALL "  extension: {import: torch-npu}\n",
	OF "11: platform.extension.import must be a Python module, as torch_npu, not "
	   "\"torch-npu\"\n" OF "11: missing key \"platform.extension.package\"\n"},
    {OUT_OF_TREE "  get_started:\n    code: |\n      import torch\n      # import torch_npu\n"
		 "      x = torch.randn(2, device=\"npu\")\n",
	OF "13: platform.get_started.code uses \"npu\" without \"import torch_npu\": add that line, "
	   "or set platform.extension.autoload: true if PyTorch loads the package by itself\n"},
    {BLOCK INSTALL "  prepare: [{title: T}, {text: x}]\n",
	OF "11: missing key \"platform.prepare.title\"\n" OF
	   "11: platform.prepare: a step needs text, commands or url besides its title\n"},
    {BLOCK INSTALL "  prepare: {title: T}\n  help: https://x\n", OF
	"11: platform.prepare must be a list, not a map\n" OF "12: platform.help must be a list, not \"https://x\"\n"},
    {BLOCK INSTALL "  help: [{title: H, url: 'javascript:alert(1)'}, {titel: H}]\n",
	OF "11: platform.help.url must be an https URL, not \"javascript:alert(1)\"\n" OF
	   "11: unknown key \"titel\" in platform.help; did you mean \"title\"?\n" OF
	   "11: missing key \"platform.help.url\"\n"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		char *text = xasprintf("%s%s", HEAD, WRONG[i].block);

		folder_write("a.d/npu.yml", text);
		free(text);
		folder_expect(WRONG[i].expected);
	}
}

static void test_too_many_entries_are_refused(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	char *long_line = xcalloc(1, 991);

	(void)state;
	memset(long_line, 'x', 990);
	buf_appendf(&text, "%s%s  install:\n", HEAD, BLOCK);
	for (int i = 0; i < 14; i++) {
		buf_appendf(&text, "  - {build: nightly, os: linux, package: pip, platform: V%d, commands: [", i);
		for (int n = 0; n < 10; n++)
			buf_appendf(&text, "%s,", long_line);
		buf_append_str(&text, "]}\n");
	}
	folder_write("a.d/npu.yml", buf_str(&text));
	folder_expect(OF "5: platform comes to more than 128 KiB of text, each combination of "
			 "install counted\n");
	buf_clear(&text);
	buf_appendf(&text, "%s%s  versions: [", HEAD, BLOCK);
	for (int i = 0; i < 20; i++)
		buf_appendf(&text, "V%d,", i);
	buf_append_str(&text, "]\n  install:\n");
	for (int i = 0; i < 30; i++)
		buf_appendf(&text, "  - {build: stable, torch: 2.%d, os: linux, package: pip, commands: [x]}\n", i);
	folder_write("a.d/npu.yml", buf_str(&text));
	folder_expect(OF "31: platform.install comes to more than 400 combinations\n");
	buf_release(&text);
	free(long_line);
}

static void test_versions_of_torch(void **state)
{
	(void)state;
	assert_int_equal(platform_build_of("2.9.1"), BUILD_STABLE);
	assert_int_equal(platform_build_of("2.9.1+cpu"), BUILD_STABLE);
	assert_int_equal(platform_build_of("2.10"), BUILD_STABLE);
	assert_int_equal(platform_build_of("2.10.0a0+gitabc"), BUILD_NIGHTLY);
	assert_int_equal(platform_build_of("2.10.0.dev20251118+cpu"), BUILD_NIGHTLY);
	assert_int_equal(platform_build_of("2.9.1-rc1"), BUILD_NIGHTLY);
	assert_int_equal(platform_build_of("2"), BUILD_NIGHTLY);
	assert_int_equal(platform_build_of("2."), BUILD_NIGHTLY);
	assert_int_equal(platform_build_of(""), BUILD_NIGHTLY);
	assert_true(platform_is_release("2.9.1+cu128", "2.9.1"));
	assert_false(platform_is_release("2.9.10", "2.9.1"));
	assert_false(platform_is_release("2.9.1.dev1", "2.9.1"));
	assert_false(platform_is_release("2.9", "2.9.1"));
	assert_int_equal(platform_os_of("Ubuntu 22.04.3 LTS"), OS_LINUX);
	assert_int_equal(platform_os_of("openEuler 24.03"), OS_LINUX);
	assert_int_equal(platform_os_of("macOS 15.1"), OS_MACOS);
	assert_int_equal(platform_os_of("Microsoft Windows Server 2022"), OS_WINDOWS);
	assert_int_equal(platform_os_of("Darwin 24"), OS_MACOS);
	assert_int_equal(platform_os_of("FreeBSD 14"), N_PLATFORM_OSES);
	assert_int_equal(platform_os_of(""), N_PLATFORM_OSES);
	assert_int_equal(platform_os_of(NULL), N_PLATFORM_OSES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_minimal_platform, setup, folder_teardown),
	    cmocka_unit_test_setup_teardown(test_full_platform, setup, folder_teardown),
	    cmocka_unit_test_setup_teardown(test_autoload_needs_no_import, setup, folder_teardown),
	    cmocka_unit_test_setup_teardown(test_wrong, setup, folder_teardown),
	    cmocka_unit_test_setup_teardown(test_too_many_entries_are_refused, setup, folder_teardown),
	    cmocka_unit_test(test_versions_of_torch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
