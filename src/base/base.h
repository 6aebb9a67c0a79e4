/* The Makefile includes this file first into each file, so no file includes these headers of the C library or those of
 * src/base/ itself. It ends with forbidden functions of the C library: the compiler's error has the function to use
 * instead.
 * Thread: see each header. */
#pragma once

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_out.h"
#include "base/json_slice.h"
#include "base/keys.h"
#include "base/log.h"
#include "base/options.h"
#include "base/secret.h"
#include "base/str.h"

#define BANNED(name, use) banned_##name##_use_##use

#undef strcpy
#define strcpy(a, b) BANNED(strcpy, snprintf)
#undef strcat
#define strcat(a, b) BANNED(strcat, buf_append)
#undef strncpy
#define strncpy(a, b, n) BANNED(strncpy, snprintf)
#undef sprintf
#define sprintf(...) BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf, vsnprintf)
#undef gmtime
#define gmtime(t) BANNED(gmtime, gmtime_r)
#undef localtime
#define localtime(t) BANNED(localtime, gmtime_r)
#undef strtok
#define strtok(a, b) BANNED(strtok, strchr)
#undef atoi
#define atoi(a) BANNED(atoi, parse_int64)
#undef atol
#define atol(a) BANNED(atol, parse_int64)
