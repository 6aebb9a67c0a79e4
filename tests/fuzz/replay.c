/* A main() for a fuzz target that needs no fuzzer: it plays each file of the given folders, and damaged copies of it: cut at a random
 * place, with some bytes replaced. The copies are the same in each run. usage: TARGET [FOLDER]... */
#include <dirent.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { COPIES = 2000, REPLACED_MAX = 8, RANDOM_BYTES = 256 };

static uint32_t random_state = 2463534242;

/* Marsaglia's xorshift */
static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % n;
}

/* Each input has memory of its own size, so that a read behind its end is found. */
static void play(const char *data, size_t n)
{
	uint8_t *copy = xmalloc(n + !n);

	memcpy(copy, data, n);
	(void)LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static void play_copies(const char *data, size_t n, int n_copies)
{
	for (int i = 0; n && i < n_copies; i++) {
		char *copy = xmalloc(n);

		memcpy(copy, data, n);
		for (uint32_t k = random_below(REPLACED_MAX); k > 0; k--)
			copy[random_below((uint32_t)n)] = (char)random_below(256);
		play(copy, random_below(2) ? n : random_below((uint32_t)n));
		free(copy);
	}
}

static int is_file(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Returns the number of its files, which share the copies. */
static int play_folder(const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, is_file, alphasort);

	if (n <= 0) {
		fprintf(stderr, "%s: %s\n", folder, n ? strerror(errno) : "no seeds");
		exit(1);
	}
	for (int i = 0; i < n; i++) {
		struct buf data = BUF_INIT(SIZE_MAX / 2);
		struct error e = {0};
		char *path = xasprintf("%s/%s", folder, entries[i]->d_name);

		if (file_read(path, &data, &e)) {
			fprintf(stderr, "%s\n", e.text);
			exit(1);
		}
		play(buf_str(&data), data.len);
		play_copies(buf_str(&data), data.len, COPIES / n);
		buf_release(&data);
		free(path);
		free(entries[i]);
	}
	free(entries);
	return n;
}

int main(int argc, char **argv)
{
	char noise[RANDOM_BYTES];
	int n = 0;

	for (int i = 1; i < argc; i++)
		n += play_folder(argv[i]);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)random_below(256);
	play("", 0);
	play_copies(noise, sizeof(noise), COPIES);
	printf("%d files and damaged copies of them\n", n);
	return 0;
}
