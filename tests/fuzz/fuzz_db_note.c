/* Any text as a note of another daemon: it is our own, or it names topics and rows within the bounds, or it means everything. */
#include "db/notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xstrndup((const char *)data, n), again[NOTE_MAX_BYTES];
	struct store_touched t, same;
	unsigned topics, same_topics;

	if (note_parse(text, "0123456789abcdef", &topics, &t)) {
		assert(t.n_changes <= TOUCHED_MAX && t.n_jobs <= TOUCHED_MAX && t.n_accelerators <= TOUCHED_NAMES_MAX);
		note_text("another", topics, &t, again);
		assert(note_parse(again, "0123456789abcdef", &same_topics, &same));
		assert(topics == same_topics && t.is_all == same.is_all && t.n_changes == same.n_changes &&
		       t.n_jobs == same.n_jobs);
	}
	free(text);
	return 0;
}
