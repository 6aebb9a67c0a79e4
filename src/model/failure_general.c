/* Which messages say nothing about what failed. A word decides: one that is not among those that any
 * failure is told with makes a message specific. Torch's own texts for numbers that differ and for
 * memory that ran out are among them: once the numbers are gone, every breakage reads so. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/failure_text.h"
#include "model/failure_word.h"

/* Sorted; lower case. The kinds of devices among them: that one of them had an error is what each of
 * its failures says. */
static const char *const WORDS[] = {"a", "aborted", "above", "absolute", "access", "actual",
    "after", "all", "allowed", "an", "and", "another", "are", "as", "assert", "assertion",
    "assignment", "at", "attribute", "be", "because", "been", "below", "booleans", "bounds",
    "build", "bus", "but", "by", "call", "can", "canceled", "cancelled", "cannot", "caught",
    "close", "code", "command", "comparison", "completed", "conclusion", "core", "could", "cpu",
    "crash", "crashed", "cuda", "deadline", "depth", "details", "device", "did", "died", "differ",
    "difference", "differences", "different", "dimension", "division", "do", "does", "dumped",
    "during", "elements", "encountered", "end", "ended", "ends", "equal", "errno", "error",
    "errors", "exceed", "exceeded", "exceeds", "exception", "execution", "exit", "exited",
    "expected", "fail", "failed", "fails", "failure", "failures", "false", "fatal", "fault", "file",
    "finish", "finished", "floating", "for", "from", "function", "got", "gpu", "greater",
    "greatest", "had", "handling", "has", "have", "hip", "hours", "hpu", "illegal", "in", "index",
    "info", "instruction", "internal", "into", "invalid", "is", "it", "its", "job", "kernel",
    "keys", "kill", "killed", "larger", "last", "launch", "length", "less", "likes", "limit",
    "line", "list", "lists", "log", "logs", "machine", "make", "makefile", "mapping", "mappings",
    "match", "max", "maximum", "memory", "minutes", "mismatch", "mismatched", "missing", "most",
    "mps", "nan", "ninja", "no", "none", "nonzero", "not", "npu", "null", "object", "occurred",
    "of", "on", "operation", "or", "out", "output", "passed", "point", "process", "raise", "raised",
    "ran", "range", "recent", "recursion", "relative", "report", "reported", "result", "results",
    "return", "returned", "rocm", "run", "runner", "running", "scalars", "script", "seconds", "see",
    "segfault", "segmentation", "sequences", "shape", "shapes", "short", "side", "sigabrt",
    "sigbus", "sigfpe", "sigill", "sigint", "sigkill", "signal", "sigsegv", "sigterm", "size",
    "skipped", "some", "something", "start", "started", "status", "stderr", "stdout", "step",
    "stopped", "subcommand", "subprocess", "summary", "task", "tensor", "tensors", "terminated",
    "test", "tests", "than", "that", "the", "this", "time", "timed", "timeout", "to", "too", "tpu",
    "traceback", "triggered", "true", "type", "uncaught", "unexpected", "unexpectedly", "unhandled",
    "unknown", "unspecified", "up", "value", "values", "waiting", "was", "we", "went", "were",
    "while", "will", "with", "within", "without", "worker", "would", "wrong", "xpu", "zero"};

/* A message with one of these says no more, whatever else stands beside it: a command, a machine, sizes. */
static const char *const PHRASES[] = {"out of memory", "exit code N", "exit status N",
    "exited with code", "exited with status",
    /* Outpost's own, for work that nobody reported */
    "did not start within", "did not finish within", "not acknowledged within",
    "and never reported back", "most of them handed it back", "handed back by", "fell silent",
    "the job ended with"};

static int compare(const void *word, const void *entry)
{
	return strcmp(word, *(const char *const *)entry);
}

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

/* What the placeholder left of "3x4" or of a number's unit says nothing either. */
static bool is_specific(const char *p, size_t n)
{
	size_t n_letters = 0;
	char word[64];

	for (size_t i = 0; i < n; i++)
		n_letters +=
		    p[i] != 'N' && p[i] != '_' && p[i] != '.' && !(p[i] >= '0' && p[i] <= '9');
	if (n_letters < 2 || is_name_of_exception(p, n))
		return false;
	if (n >= sizeof(word))
		return true;
	for (size_t i = 0; i < n; i++)
		word[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 'a' - 'A') : p[i];
	word[n] = '\0';
	return !bsearch(word, WORDS, ARRAY_LEN(WORDS), sizeof(*WORDS), compare);
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

		if (strncmp(p + n, "://", 3) == 0) { /* where the rest is told, not what */
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

/* What harnesses and machines say when they fail themselves: storage, memory, devices, networks, lost processes. A test
 * may fail so by its own fault as well, so this only keeps a failure from being called new without an experiment. */
static const char *const INFRASTRUCTURE[] = {"no space left on device", "disk quota exceeded",
    "read-only file system", "input/output error", "stale file handle", "out of memory", "oom-kill",
    "oom kill", "cannot allocate memory", "bad_alloc", "sigkill", "exit code 137",
    "exit status 137", "exit code 143", "ecc error", "uncorrectable", "device lost",
    "device is lost", "device was lost", "lost device", "fallen off the bus", "no device found",
    "gpus are available", "devices are available", "no devices found", "device not found",
    "device unavailable", "device is unavailable", "devices are busy or unavailable", "hbm multi",
    "connection lost", "lost connection", "connection reset", "connection refused",
    "connection aborted", "connection closed", "connection timed out", "connection was closed",
    "broken pipe", "network is unreachable", "network error", "no route to host", "name resolution",
    "could not resolve host", "name or service not known", "remote end closed",
    "service unavailable", "bad gateway", "gateway time-out", "gateway timeout",
    "too many requests", "ssl error", "tls handshake", "worker lost", "lost worker",
    "not properly terminated", "lost communication", "node down", "machine is down",
    "machine was lost", "received a shutdown signal", "runner has received",
    "operation was canceled", "operation was cancelled", "preempted", "evicted",
    "failed to pull image", "container runtime", "docker daemon",
    /* a job's or dispatch's end as Outpost tells it */
    "fell silent", "and never reported back", "handed back by", "not acknowledged within",
    "did not start within"};

bool failure_text_is_infrastructure(const char *text)
{
	char *lower = text ? lower_case(text, 0) : NULL;
	const char *device = lower ? strstr(lower, "device") : NULL; /* "device 3 of npu-7 lost" */
	bool is_it =
	    lower &&
	    (has_phrase(lower, INFRASTRUCTURE, ARRAY_LEN(INFRASTRUCTURE)) ||
		(strncmp(lower, "killed", 6) == 0 && !lower[6 + strspn(lower + 6, " .")]) ||
		(device && strstr(device, " lost")));

	free(lower);
	return is_it;
}

bool failure_text_is_general(const char *normalised)
{
	char *lower = normalised ? lower_case(normalised, FAILURE_PLACEHOLDER) : NULL;
	bool is_general = !lower || has_phrase(lower, PHRASES, ARRAY_LEN(PHRASES)) ||
			  !has_specific_word(normalised);

	free(lower);
	return is_general;
}
