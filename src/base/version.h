/* What --version, the User-Agent and the status page say. The Makefile defines it from
 * the file VERSION. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#ifndef OUTPOST_VERSION
#define OUTPOST_VERSION "unknown"
#endif

#endif
