/* The JSON of a record (model/record.h), and the parts that the JSON of several views has. Thread: any. Each json_t * is
 * a new reference. */
#pragma once

#include "model/record.h"
#include "model/states.h"

/* Sets every field that has a name in the JSON. Bytes of a text that are not UTF-8 become U+FFFD. */
void record_to_json(json_t *object, const struct record *record, const void *values);
/* The same as a new object. */
json_t *record_json(const struct record *record, const void *values);
/* The schema of a field as docs/openapi.json has it: {"type": …, "description": …}. A new reference. */
json_t *record_field_schema(const struct record_field *field);

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
/* The page of a job; null: job 0. */
json_t *job_url_json(const char *public_url, int64_t job);
