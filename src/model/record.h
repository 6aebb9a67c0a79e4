/* A record is a row that people get to see. One list describes each record once:
 *
 *   #define RUN_RECORD(F, S)                                                                  \
 *       F(S, ID, id, "id", "x.id", "The run's number.")                                        \
 *       F(S, TIME, due_ms, "due_at", "x.due_ms", "When it was due.")
 *   RECORD_STRUCT(run, RUN_RECORD);   in the header
 *   RECORD_DEFINE(run, RUN_RECORD)    in one .c file
 *
 * Each line is F(S, TYPE, member, name in the JSON, SQL expression, description). From the list follow
 *
 *   the members of the struct       RECORD_MEMBERS
 *   the SELECT list                 RECORD_SELECT (db/record_rows.h), with the reader of a row
 *   the release of its texts        record_release()
 *   the JSON                        record_to_json(), record_out() (views/record_json.h)
 *   the schema in docs/openapi.json a test compares both (tests/unit/test_views_record.c)
 *
 * A new column of a page is one more line. A name of NULL keeps a field out of the JSON.
 *
 * Thread: any. A record is constant; the struct that it describes owns its texts until record_release(). */
#pragma once

/* The names of an enum's values, in their order. */
struct words {
	const char *const *names;
	int n;
};
/* The value with this name; words->n when no value has it, and for NULL. */
int words_find(const struct words *words, const char *name);
/* Of `enum x` with n values: its words, the name of a value (NULL: n), and the value with a name (n: none, or NULL). */
#define WORDS_DECLARE(x)                                                                                               \
	extern const struct words x##_words;                                                                           \
	const char *x##_name(enum x value);                                                                            \
	enum x x##_parse(const char *name)
/* The names follow n, in the order of the values. */
#define WORDS_DEFINE(x, n, ...)                                                                                        \
	static const char *const x##_names[(n) + 1] = {__VA_ARGS__};                                                   \
	const struct words x##_words = {x##_names, n};                                                                 \
	const char *x##_name(enum x value) { return x##_names[value]; }                                                \
	enum x x##_parse(const char *name) { return (enum x)words_find(&x##_words, name); }
/* The names of a list whose entries are X(ENUM, name, ...). */
#define WORD_NAME(e, name, ...) name,

enum record_type {
	RECORD_INT,      /* int64_t; NULL is 0 */
	RECORD_ID,       /* int64_t; 0 and NULL: none, null in the JSON */
	RECORD_COUNT,    /* int64_t; NULL is -1, null in the JSON */
	RECORD_TIME,     /* int64_t, milliseconds of the wall clock; 0: not yet, null in the JSON */
	RECORD_BOOL,     /* bool */
	RECORD_TEXT,     /* char *, owned; NULL: none */
	RECORD_COMMIT,   /* char *, owned; a commit's SHA; NULL: none, or a run whose commit is not known */
	RECORD_OBJECT,   /* char *, owned: the text of a JSON object, checked when it was stored; NULL: none */
	RECORD_SECONDS,  /* int64_t, milliseconds; NULL and negative is -1: not known; seconds in the JSON */
	RECORD_NUMBER,   /* double */
	RECORD_TEXTS,    /* char **, owned, NULL-terminated; stored as a JSON array of text */
	RECORD_BLOB,     /* struct record_blob, borrowed until the next row; not in the JSON */
	RECORD_BORROWED, /* const char *, borrowed until the next row; "" for NULL; not in the JSON */
	RECORD_WORD,     /* an enum, stored and shown by name; NULL and unknown names: words->n */
	RECORD_RANK,     /* an enum, stored as its number and shown by name */
	RECORD_KEY,      /* record_key, an id that Outpost made (base/crypto.h); not in the JSON */
	RECORD_GUID,     /* char *, owned; a delivery's GUID; not in the JSON */
	RECORD_DIGEST,   /* record_digest; zeros for NULL and for another length; not in the JSON */
};

struct record_blob {
	const void *p;
	size_t n;
};

struct record_field {
	const char *name; /* in the JSON; NULL: not shown */
	enum record_type type;
	const struct words *words; /* RECORD_WORD, RECORD_RANK; a value without a name is null in the JSON */
	size_t offset;
	const char *description; /* for docs/openapi.json; "": the name says it */
};

struct record {
	const char *name;
	const struct record_field *fields;
	size_t n;
};

/* Frees the texts of a record and sets them to NULL. */
void record_release(const struct record *r, void *values);
/* The same for each record of a list; frees the list too. */
#define RECORDS_RELEASE(S, list, n)                                                                                    \
	do {                                                                                                           \
		for (size_t i_ = 0; i_ < (size_t)(n); i_++)                                                            \
			record_release(&S##_record, &(list)[i_]);                                                      \
		free(list);                                                                                            \
		(list) = NULL;                                                                                         \
		(n) = 0;                                                                                               \
	} while (0)
/* Replaces the texts of a struct that was copied by assignment by copies, so that it owns them. */
void record_copy_texts(const struct record *r, void *values);

typedef char record_key[ID_BYTES];
typedef uint8_t record_digest[SHA256_BYTES];

/* ---- the types of the list ----
 *
 * A header that defines an enum adds its type: RECORD_C_x and RECORD_T_x with its words. */
#define RECORD_C_INT      int64_t
#define RECORD_C_ID       int64_t
#define RECORD_C_COUNT    int64_t
#define RECORD_C_TIME     int64_t
#define RECORD_C_BOOL     bool
#define RECORD_C_TEXT     char *
#define RECORD_C_COMMIT   char *
#define RECORD_C_OBJECT   char *
#define RECORD_C_SECONDS  int64_t
#define RECORD_C_NUMBER   double
#define RECORD_C_TEXTS    char **
#define RECORD_C_BLOB     struct record_blob
#define RECORD_C_BORROWED const char *
#define RECORD_C_KEY      record_key
#define RECORD_C_GUID     char *
#define RECORD_C_DIGEST   record_digest

#define RECORD_T_INT      RECORD_INT, NULL
#define RECORD_T_ID       RECORD_ID, NULL
#define RECORD_T_COUNT    RECORD_COUNT, NULL
#define RECORD_T_TIME     RECORD_TIME, NULL
#define RECORD_T_BOOL     RECORD_BOOL, NULL
#define RECORD_T_TEXT     RECORD_TEXT, NULL
#define RECORD_T_COMMIT   RECORD_COMMIT, NULL
#define RECORD_T_OBJECT   RECORD_OBJECT, NULL
#define RECORD_T_SECONDS  RECORD_SECONDS, NULL
#define RECORD_T_NUMBER   RECORD_NUMBER, NULL
#define RECORD_T_TEXTS    RECORD_TEXTS, NULL
#define RECORD_T_BLOB     RECORD_BLOB, NULL
#define RECORD_T_BORROWED RECORD_BORROWED, NULL
#define RECORD_T_KEY      RECORD_KEY, NULL
#define RECORD_T_GUID     RECORD_GUID, NULL
#define RECORD_T_DIGEST   RECORD_DIGEST, NULL

#define RECORD_MEMBER(S, type, member, name, column, description) RECORD_C_##type member;
#define RECORD_MEMBERS(R)                                         R(RECORD_MEMBER, )

#define RECORD_FIELD(S, type, member, name, column, description)                                                       \
	{name, RECORD_T_##type, offsetof(struct S, member), description},
#define RECORD_DECLARE(S) extern const struct record S##_record
/* A struct that has only the members of the list, and its record. */
#define RECORD_STRUCT(S, R)                                                                                            \
	struct S {                                                                                                     \
		RECORD_MEMBERS(R)                                                                                      \
	};                                                                                                             \
	RECORD_DECLARE(S)
#define RECORD_DEFINE(S, R) RECORD_DEFINE_PART(S, S, R)
/* Of a struct S with several records: the name of one of them, and its list. */
#define RECORD_DEFINE_PART(part, S, R)                                                                                 \
	static const struct record_field part##_fields[] = {R(RECORD_FIELD, S)};                                       \
	const struct record part##_record = {#part, part##_fields, ARRAY_LEN(part##_fields)};
/* A record that one .c file uses: the struct and its fields. */
#define RECORD_LOCAL(S, R)                                                                                             \
	struct S {                                                                                                     \
		RECORD_MEMBERS(R)                                                                                      \
	};                                                                                                             \
	static const struct record_field S##_fields[] = {R(RECORD_FIELD, S)};                                          \
	static const struct record S##_record = {#S, S##_fields, ARRAY_LEN(S##_fields)};
