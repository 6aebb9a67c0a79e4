/* A secret with a known text. */
#pragma once

static inline struct secret *secret_of(const char *text)
{
	struct secret *s;

	if (secret_new(text, strlen(text), &s, NULL))
		abort();
	return s;
}
