/* A program's options: the values, and the messages that end the process. */
#include <setjmp.h>
#include <sys/wait.h>

#include <cmocka.h>

static const char *config_path;
static bool is_check;

static void print_help(FILE *out) { fputs("Usage: prog\n", out); }

static const struct program PROGRAM = {"prog", print_help,
    (const struct program_option[]){
	{"--config", "-c", .text = &config_path, .value = "file"}, {"--check", .flag = &is_check}, {NULL}}};

/* The words end with NULL. */
static int read_words(const char *const *words)
{
	int n = 0;

	config_path = NULL;
	is_check = false;
	while (words[n])
		n++;
	return options_read(&PROGRAM, n, (char **)words);
}

#define WORDS(...) ((const char *const[]){"/bin/prog", __VA_ARGS__, NULL})

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(read_words(WORDS("-c", "a.yml", "--check", "status", "--check")), 4);
	assert_string_equal(config_path, "a.yml");
	assert_true(is_check);
	assert_int_equal(read_words(WORDS("--config", "--odd")), 3);
	assert_string_equal(config_path, "--odd");
	assert_false(is_check);
	read_words(WORDS("--config=b.yml"));
	assert_string_equal(config_path, "b.yml");
	read_words(WORDS("--config="));
	assert_string_equal(config_path, "");
	assert_int_equal(read_words(WORDS("word")), 1);
	assert_int_equal(read_words((const char *const[]){"prog", NULL}), 1);
}

/* Reads the words in a child, whose output goes into the text. Returns its exit code. */
static int read_in_child(const char *const *words, char *text, size_t text_bytes)
{
	int ends[2], status;
	ssize_t n;
	size_t used = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		read_words(words);
		_exit(99);
	}
	close(ends[1]);
	while ((n = read(ends[0], text + used, text_bytes - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_ends(void **state)
{
	const struct {
		const char *const *words;
		int code;
		const char *text;
	} cases[] = {
	    {WORDS("--help"), 0, "Usage: prog\n"},
	    {WORDS("--check", "-h"), 0, "Usage: prog\n"},
	    {WORDS("--version"), 0, "prog " OUTPOST_VERSION "\n"},
	    {WORDS("--chek"), 2, "prog: unknown option '--chek'\nTry 'prog --help'.\n"},
	    {WORDS("--check=1"), 2, "prog: unknown option '--check=1'\nTry 'prog --help'.\n"},
	    {WORDS("-"), 2, "prog: unknown option '-'\nTry 'prog --help'.\n"},
	    {WORDS("-c"), 2, "prog: -c needs a file\nTry 'prog --help'.\n"},
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(read_in_child(cases[i].words, text, sizeof(text)), cases[i].code);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
