/* The strings of JSON: checked and skipped at memory speed, decoded where wanted. Private
 * to webhook/. Every function relies on a '\0' behind the text, which no string may
 * contain, so that it is its own end mark. */
#ifndef WEBHOOK_JSON_TEXT_H
#define WEBHOOK_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* p: behind the opening quote; end: the '\0'. Returns the closing quote, or NULL with the
 * reason in *ret_why (static) and the place in *ret_at, which are set only then. */
const char *json_text_end(const char *p, const char *end, bool *ret_has_escape,
    const char **ret_why, const char **ret_at);
/* Decodes what json_text_end() accepted, [p, end), into out with a '\0'. False when it
 * does not fit out_bytes or contains a NUL. */
bool json_text_decode(const char *p, const char *end, char *out, size_t out_bytes);

#endif
