/* The JSON of a record (model/record.h), and the parts that the JSON of several views has. Thread: any. Each json_t * that a
 * function returns is a new reference. */
#pragma once

#include "model/record.h"
#include "model/states.h"

/* Appends every field that has a name in the JSON to the object that is open in a JSON text (base/json_out.h). Bytes of a text that are
 * not UTF-8 become U+FFFD. */
void record_out(struct buf *out, const struct record *record, const void *values);
/* The same as an object of its own; and an array of such objects, from a list whose structs take `bytes`. */
void record_object_out(struct buf *out, const char *key, const struct record *record, const void *values);
void record_list_out(
    struct buf *out, const char *key, const struct record *record, const void *list, size_t n, size_t bytes);
/* The same in a tree: sets the fields of an object; and a new object. */
void record_to_json(json_t *object, const struct record *record, const void *values);
json_t *record_json(const struct record *record, const void *values);

/* {"docs", "help"}; either URL may be NULL. */
json_t *links_json(const char *docs_url, const char *help_url);
/* Milliseconds as seconds; null if negative. */
json_t *seconds_json(int64_t ms);
/* part / whole; null if whole is 0. */
json_t *share_json(int64_t part, int64_t whole);
/* The page of a change: its pull request, or its commit where number is 0; null without both. The same commit may be a
 * push and a periodic run, so the page of a commit names the kind. public_url: without a trailing slash. */
json_t *change_url_json(const char *public_url, enum change_kind kind, int64_t number, const char *sha);
/* The text of a cursor ("next"), which the client returns unread: at most 1 KiB (params_cursor()). */
json_t *cursor_json(const void *bytes, size_t n);
/* Appends the page of a job; null: job 0. */
void job_url_out(struct buf *out, const char *key, const char *public_url, int64_t job);
