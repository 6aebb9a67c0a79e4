/* The one comment of each PR: which it is and what was last written. The wish to write is
 * an outbox row of kind COMMENT (store/outbox.h). */
#ifndef STORE_COMMENTS_H
#define STORE_COMMENTS_H

#include "base/hash.h"
#include "store/store.h"

struct get_comment {
	struct store_query q;
	const char *repository;
	int64_t number;
	bool is_known;      /* out: a row is there */
	int64_t comment_id; /* out; 0: not written yet, or not known */
	uint8_t body_hash[SHA256_BYTES];
	int64_t written_ms;
	int64_t change_id;    /* out: the head that it told of; 0: not known */
	bool has_red_written; /* out: the last written body told of a red cell */
};
int store_get_comment(struct store *s, struct get_comment *q) MUST_CHECK;

struct put_comment {
	struct store_op op;
	const char *repository;
	int64_t number, comment_id, change_id, written_ms;
	uint8_t body_hash[SHA256_BYTES];
	bool has_red_written;
};
int store_put_comment(struct store *s, struct put_comment *op) MUST_CHECK;

#endif
