/* One small set of error codes for the whole program, and struct error, where the first failure puts its
 * explanation. Functions return 0 or a negative code. The layer that knows what the failure means logs it,
 * once. Thread: any; a struct error belongs to one thread at a time. */
#pragma once

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define ERR_CODES(X)                                                                                                   \
	X(BUSY, "busy: a queue is full, try again later")                                                              \
	X(NOT_FOUND, "not found")                                                                                      \
	X(EXISTS, "exists already")                                                                                    \
	X(CONFLICT, "conflicts with what is recorded")                                                                 \
	X(INVALID, "invalid input")                                                                                    \
	X(TOO_BIG, "too big")                                                                                          \
	X(RANGE, "out of range")                                                                                       \
	X(DENIED, "not allowed")                                                                                       \
	X(AUTH, "not authenticated")                                                                                   \
	X(TIMEOUT, "timed out")                                                                                        \
	X(CANCELLED, "cancelled")                                                                                      \
	X(NETWORK, "network failure")                                                                                  \
	X(PROTOCOL, "the peer broke the protocol")                                                                     \
	X(IO, "input/output failure")                                                                                  \
	X(FULL, "no space left")                                                                                       \
	X(REFUSED, "the database refuses a statement")                                                                 \
	X(AWAY, "the database is not reached")                                                                         \
	X(LOGIN, "the database refuses the login")                                                                     \
	X(READ_ONLY, "the database is read-only")                                                                      \
	X(CORRUPT, "data on disk is damaged")                                                                          \
	X(TOO_NEW, "written by a newer version")                                                                       \
	X(CLOSING, "shutting down")

#define CODE_INDEX(name, text) ERR_INDEX_##name,
#define CODE_VALUE(name, text) ERR_##name = -(int)ERR_INDEX_##name,
enum err { ERR_OK = 0, ERR_CODES(CODE_INDEX) };
enum { ERR_CODES(CODE_VALUE) };

/* "ERR_BUSY" and "busy: …"; an unknown code gives a fixed text. Static strings. */
const char *err_name(int code);
const char *err_text(int code);

/* The explanation that goes with a code. Zero-initialise; no release needed. */
struct error {
	int code;
	char text[504];
};

/* Records the first failure and returns `code`; a later call changes nothing. `e` may be NULL. Never put a
 * secret into the text: it is logged and shown. */
int error_set(struct error *e, int code, const char *fmt, ...) PRINTF(3, 4);
