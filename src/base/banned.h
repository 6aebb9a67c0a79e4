/* Unsafe functions become compile errors that name the function to use instead. The Makefile includes this
 * file into every translation unit. Thread: any; only macros, which own nothing. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

#endif
