/* One pass over the message, one lexeme at a time. It is idempotent: it writes each lexeme whole or not at all, a word
 * that began with a digit begins with a letter then, a path has no folders, and no lexeme joins its neighbours.
 *
 * The second half decides which messages are general, because they could describe any failure. One word outside the
 * list of general words makes a message specific. Torch's own texts for different numbers and for exhausted memory
 * count as general: without their numbers, these texts are the same for every failure. */
#include "model/failure_text.h"

struct scan {
	const char *at;
	char out[FAILURE_TEXT_MAX_BYTES + 1];
	size_t len;
	bool is_full; /* a lexeme did not fit: the rest is left out, too */
};

static bool is_of_path(char c) { return failure_is_word(c) || (c && strchr("/.+-@%~=", c)); }

static bool is_of_drive_path(char c) { return is_of_path(c) || c == '\\'; }

static void emit(struct scan *s, const char *p, size_t n)
{
	if (s->is_full || s->len + n > FAILURE_TEXT_MAX_BYTES) {
		s->is_full = true;
		return;
	}
	memcpy(s->out + s->len, p, n);
	s->len += n;
}

static char last_written(const struct scan *s) { return s->len ? s->out[s->len - 1] : '\0'; }

/* The rest of tmp.Xa3bC9dEf1, as mktemp makes them. */
static bool is_rest_of_temporary(const struct scan *s, const char *p, size_t n)
{
	return s->len >= 4 && memcmp(s->out + s->len - 4, "tmp.", 4) == 0 && n >= 6 && failure_has_digit(p, n);
}

/* ---- words ---- */

/* The beginning of the last part of a path; NULL: it has none. */
static const char *base_name(const char *p, size_t n)
{
	while (n && (p[n - 1] == '/' || p[n - 1] == '\\'))
		n--;
	if (!n)
		return NULL;
	while (n && p[n - 1] != '/' && p[n - 1] != '\\')
		n--;
	return p + n;
}

static bool skip_drive(struct scan *s, size_t n)
{
	const char *path = s->at + 2;

	if (n != 1 || !isalpha((unsigned char)s->at[0]) || s->at[0] == FAILURE_PLACEHOLDER || s->at[1] != ':' ||
	    *path != '\\' || last_written(s) == '-')
		return false;
	const char *base = base_name(path, failure_span(path, is_of_drive_path));
	if (base)
		s->at = base;
	return base != NULL;
}

static void read_word(struct scan *s)
{
	size_t n = failure_span(s->at, failure_is_word);
	struct failure_word w;

	if (skip_drive(s, n))
		return;
	if (is_rest_of_temporary(s, s->at, n)) {
		emit(s, (const char[]){FAILURE_PLACEHOLDER}, 1);
		s->at += n;
		return;
	}
	s->at += failure_word_read(s->at, n, &w);
	emit(s, w.text, w.len);
}

/* ---- the rest ---- */

/* Behind a dash, the part without its folders could be the next part of a UUID. */
static bool begins_path(const struct scan *s)
{
	char before = last_written(s);

	if (failure_is_word(before) || (before && strchr("/.)-", before)))
		return false;
	if (s->at[0] == '~')
		return s->at[1] == '/';
	return s->at[0] == '/' && !(before == ':' && s->at[1] == '/');
}

static bool skip_folders(struct scan *s)
{
	if (!begins_path(s))
		return false;
	const char *base = base_name(s->at, failure_span(s->at, is_of_path));
	if (!base || base == s->at)
		return false;
	s->at = base;
	return true;
}

/* The length of a colour, with or without its escape character. */
static size_t escape_length(const char *p)
{
	size_t n = *p == 0x1b;

	if (p[n] != '[')
		return 0;
	n++;
	while (failure_is_digit(p[n]) || p[n] == ';' || p[n] == '?')
		n++;
	if (*p == 0x1b)
		return p[n] >= 0x40 && p[n] <= 0x7e ? n + 1 : n;
	return p[n] == 'm' && failure_has_digit(p, n) ? n + 1 : 0;
}

static bool is_sign(const struct scan *s)
{
	char before = last_written(s);

	if (!strchr("+-.", s->at[0]) || !failure_is_digit(s->at[1 + (s->at[1] == '.')]))
		return false;
	return !failure_is_word(before) && before != ')' && before != ']';
}

/* Blanks and quotation marks of all kinds, by their length; 0: neither. */
static size_t other_form(const char *p, char *ret)
{
	static const struct {
		const char *form;
		char as;
	} FORMS[] = {{"\"", '\''}, {"`", '\''}, {"\xe2\x80\x98", '\''}, {"\xe2\x80\x99", '\''}, {"\xe2\x80\x9c", '\''},
	    {"\xe2\x80\x9d", '\''}, {"\xc2\xa0", ' '}};
	size_t n = escape_length(p);

	*ret = ' ';
	if (n || (*p && ((unsigned char)*p <= ' ' || *p == 0x7f)))
		return n ? n : 1;
	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		n = strlen(FORMS[i].form);
		*ret = FORMS[i].as;
		if (strncmp(p, FORMS[i].form, n) == 0)
			return n;
	}
	return 0;
}

/* PyTorch's tests append a command to each message. Left in, it would make all failures of a test look alike. Its first sentence is searched
 * in the normalised text, because a message may have line breaks in it. */
static void drop_epilogue(struct scan *s)
{
	static const char HOW_TO_RUN[] = "To execute this test, run the following from the base ";
	const char *p = s->out;

	s->out[s->len] = '\0';
	while ((p = strstr(p, HOW_TO_RUN)) != NULL && p > s->out && failure_is_word(p[-1]))
		p++;
	if (p)
		s->len = (size_t)(p - s->out);
}

char *failure_text_normalise(const char *text)
{
	struct scan s = {.at = text};

	while (*s.at && !s.is_full) {
		if (failure_is_word(*s.at)) {
			read_word(&s);
		} else {
			char as;
			size_t n = other_form(s.at, &as);

			if (n) {
				if (as != ' ' || (s.len && last_written(&s) != ' '))
					emit(&s, &as, 1);
			} else if (is_sign(&s)) {
				n = 1;
			} else if (!skip_folders(&s)) {
				/* Not a part of a character, as long as the text is UTF-8. */
				size_t length = 1;

				while ((unsigned char)*s.at >= 0xc0 && length < 4 &&
				       ((unsigned char)s.at[length] & 0xc0) == 0x80)
					length++;
				n = length;
				emit(&s, s.at, n);
			}
			s.at += n;
		}
	}
	drop_epilogue(&s);
	while (last_written(&s) == ' ')
		s.len--;
	return xstrndup(s.out, s.len);
}

/* Sorted; lower case. The kinds of devices are among them, because each failure of a device says that it had an error. */
static const char *const WORDS[] = {"a", "aborted", "above", "absolute", "access", "actual", "after", "all", "allowed",
    "an", "and", "another", "are", "as", "assert", "assertion", "assignment", "at", "attribute", "be", "because",
    "been", "below", "booleans", "bounds", "build", "bus", "but", "by", "call", "can", "canceled", "cancelled",
    "cannot", "caught", "close", "code", "command", "comparison", "completed", "conclusion", "core", "could", "cpu",
    "crash", "crashed", "cuda", "deadline", "depth", "details", "device", "did", "died", "differ", "difference",
    "differences", "different", "dimension", "division", "do", "does", "dumped", "during", "elements", "encountered",
    "end", "ended", "ends", "equal", "errno", "error", "errors", "exceed", "exceeded", "exceeds", "exception",
    "execution", "exit", "exited", "expected", "fail", "failed", "fails", "failure", "failures", "false", "fatal",
    "fault", "file", "finish", "finished", "floating", "for", "from", "function", "got", "gpu", "greater", "greatest",
    "had", "handling", "has", "have", "hip", "hours", "hpu", "illegal", "in", "index", "info", "instruction",
    "internal", "into", "invalid", "is", "it", "its", "job", "kernel", "keys", "kill", "killed", "larger", "last",
    "launch", "length", "less", "likes", "limit", "line", "list", "lists", "log", "logs", "machine", "make", "makefile",
    "mapping", "mappings", "match", "max", "maximum", "memory", "minutes", "mismatch", "mismatched", "missing", "most",
    "mps", "nan", "ninja", "no", "none", "nonzero", "not", "npu", "null", "object", "occurred", "of", "on", "operation",
    "or", "out", "output", "passed", "point", "process", "raise", "raised", "ran", "range", "recent", "recursion",
    "relative", "report", "reported", "result", "results", "return", "returned", "rocm", "run", "runner", "running",
    "scalars", "script", "seconds", "see", "segfault", "segmentation", "sequences", "shape", "shapes", "short", "side",
    "sigabrt", "sigbus", "sigfpe", "sigill", "sigint", "sigkill", "signal", "sigsegv", "sigterm", "size", "skipped",
    "some", "something", "start", "started", "status", "stderr", "stdout", "step", "stopped", "subcommand",
    "subprocess", "summary", "task", "tensor", "tensors", "terminated", "test", "tests", "than", "that", "the", "this",
    "time", "timed", "timeout", "to", "too", "tpu", "traceback", "triggered", "true", "type", "uncaught", "unexpected",
    "unexpectedly", "unhandled", "unknown", "unspecified", "up", "value", "values", "waiting", "was", "we", "went",
    "were", "while", "will", "with", "within", "without", "worker", "would", "wrong", "xpu", "zero"};

/* A message with one of these fits any failure, whatever else it contains: a command, a machine, sizes. */
static const char *const PHRASES[] = {"out of memory", "exit code N", "exit status N", "exited with code",
    "exited with status", "crashed while running",
    /* Outpost's own messages, for work without a report */
    "did not start within", "did not finish within", "not acknowledged within", "and never reported back",
    "most of them handed it back", "handed back by", "fell silent", "the job ended with"};

static int compare_word(const void *word, const void *entry) { return strcmp(word, *(const char *const *)entry); }

static bool is_name_of_exception(const char *p, size_t n)
{
	static const char *const ENDS[] = {
	    "Error", "Exception", "Exit", "Failure", "Interrupt", "Warning", "error", "exception"};
	char name[64];

	if (n >= sizeof(name))
		return false;
	memcpy(name, p, n);
	name[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
		if (str_has_suffix(name, ENDS[i]))
			return true;
	return false;
}

/* The rest of "3x4" or of a number's unit next to the placeholder is not specific either. */
static bool is_specific(const char *p, size_t n)
{
	size_t n_letters = 0;
	char word[64];

	for (size_t i = 0; i < n; i++)
		n_letters += p[i] != 'N' && p[i] != '_' && p[i] != '.' && !(p[i] >= '0' && p[i] <= '9');
	if (n_letters < 2 || is_name_of_exception(p, n))
		return false;
	if (n >= sizeof(word))
		return true;
	for (size_t i = 0; i < n; i++)
		word[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 'a' - 'A') : p[i];
	word[n] = '\0';
	return !bsearch(word, WORDS, ARRAY_LEN(WORDS), sizeof(*WORDS), compare_word);
}

/* Whether one of the phrases begins at one of the words. Lower case, but for placeholders. */
static bool has_phrase(const char *text, const char *const *phrases, size_t n)
{
	for (const char *p = text; *p; p++) {
		if (p > text && failure_is_word(p[-1]))
			continue;
		for (size_t i = 0; i < n; i++)
			if (*p == phrases[i][0] && strncmp(p, phrases[i], strlen(phrases[i])) == 0)
				return true;
	}
	return false;
}

/* free(). The placeholder stays as it is. */
static char *lower_case(const char *text, char keep)
{
	char *lower = xstrdup(text);

	for (char *p = lower; *p; p++)
		if (*p >= 'A' && *p <= 'Z' && (*p != keep || failure_is_word(p[1])))
			*p = (char)(*p + 'a' - 'A');
	return lower;
}

static bool has_specific_word(const char *p)
{
	static const char BETWEEN[] = " !\"#$%&'()*+,-/:;<=>?@[\\]^`{|}~";

	while (*p) {
		size_t n = strcspn(p, BETWEEN);
		size_t end = n;

		if (strncmp(p + n, "://", 3) == 0) { /* an address of more information */
			p += strcspn(p, " '<>");
			continue;
		}
		while (end && p[end - 1] == '.')
			end--;
		if (is_specific(p, end))
			return true;
		p += n;
		p += strspn(p, BETWEEN);
	}
	return false;
}

/* Messages of harnesses and machines that fail themselves: storage, memory, devices, networks, lost processes. A test
 * may cause such a failure, too, so these words excuse nothing. Such a failure is neither NEW nor BASE, and its rerun
 * waits for a good machine. */
static const char *const INFRASTRUCTURE[] = {"no space left on device", "disk quota exceeded", "read-only file system",
    "input/output error", "stale file handle", "out of memory", "oom-kill", "oom kill", "cannot allocate memory",
    "bad_alloc", "sigkill", "exit code 137", "exit status 137", "exit code 143", "ecc error", "uncorrectable",
    "device lost", "device is lost", "device was lost", "lost device", "fallen off the bus", "no device found",
    "gpus are available", "devices are available", "no devices found", "device not found", "device unavailable",
    "device is unavailable", "busy or unavailable", "hbm multi", "device acquire failed", "failed to start the device",
    "system not yet initialized", "found no nvidia driver", "read timed out", "max retries exceeded",
    "couldn't connect to", "or there was a network failure", "connection lost", "lost connection", "connection reset",
    "connection refused", "connection aborted", "connection closed", "connection timed out", "connection was closed",
    "broken pipe", "network is unreachable", "network error", "no route to host", "name resolution",
    "could not resolve host", "name or service not known", "remote end closed", "service unavailable", "bad gateway",
    "gateway time-out", "gateway timeout", "too many requests", "ssl error", "tls handshake", "worker lost",
    "lost worker", "not properly terminated", "lost communication", "node down", "machine is down", "machine was lost",
    "received a shutdown signal", "runner has received", "operation was canceled", "operation was cancelled",
    "preempted", "evicted", "failed to pull image", "container runtime", "docker daemon",
    /* Outpost's own messages about the end of a job or dispatch */
    "fell silent", "and never reported back", "handed back by", "not acknowledged within", "did not start within"};

bool failure_text_is_infrastructure(const char *text)
{
	char *lower = text ? lower_case(text, 0) : NULL;
	const char *device = lower ? strstr(lower, "device") : NULL; /* "device 3 of npu-7 lost" */
	bool is_it = lower && (has_phrase(lower, INFRASTRUCTURE, ARRAY_LEN(INFRASTRUCTURE)) ||
				  (strncmp(lower, "killed", 6) == 0 && !lower[6 + strspn(lower + 6, " .")]) ||
				  (device && strstr(device, " lost")));

	free(lower);
	return is_it;
}

bool failure_text_is_general(const char *normalised)
{
	char *lower = normalised ? lower_case(normalised, FAILURE_PLACEHOLDER) : NULL;
	bool is_general = !lower || has_phrase(lower, PHRASES, ARRAY_LEN(PHRASES)) || !has_specific_word(normalised);

	free(lower);
	return is_general;
}
