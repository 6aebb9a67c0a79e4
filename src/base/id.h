/* Identifiers from the operating system's random source. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stddef.h>

#define ID_BYTES   27 /* 128 bits in base32 and the end */
#define UUID_BYTES 37

void random_bytes(void *out, size_t n);
/* 26 characters a-z2-7: a dispatch's id. Returns out. */
char *id_new(char out[ID_BYTES]);
/* RFC 9562 version 4. Returns out. */
char *uuid_new(char out[UUID_BYTES]);

#endif
