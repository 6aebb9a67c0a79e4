/* The options of a program's command line: the same rules and the same messages for all programs. Thread: main(), before
 * other threads begin. Owns: nothing; texts are borrowed from argv. */
#pragma once

/* Exactly one of text and flag is set: the option's value goes there. */
struct program_option {
	const char *name;   /* "--config"; NULL ends the list */
	const char *letter; /* "-c", or NULL */
	const char *value;  /* with text: its kind of value, for a message: "file" */
	const char **text;
	bool *flag;
};

struct program {
	const char *name; /* "outpostd" */
	void (*print_help)(FILE *out);
	const struct program_option *options;
};

/* Reads the options before the first other word, and returns that word's index in argv. `--config=FILE` is the same as
 * `--config FILE`. Prints and ends the process for --help, -h, --version and a mistake (exit code 2). */
int options_read(const struct program *p, int argc, char **argv);
/* Prints a mistake in the command line on stderr, and ends the process with the exit code 2. */
void options_refuse(const struct program *p, const char *fmt, ...) PRINTF(2, 3) __attribute__((noreturn));
