/* A secret with a known text. */
#ifndef TESTS_SECRET_OF_H
#define TESTS_SECRET_OF_H

#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

static inline struct secret *secret_of(const char *text)
{
	struct secret *s;

	if (secret_new(text, strlen(text), &s, NULL))
		abort();
	return s;
}

#endif
