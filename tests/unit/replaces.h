/* A test that defines a function of a layer below itself, for example a store that fails, says so with
 *
 *   REPLACES(store_report_job);
 *
 * before the definition. The linker then gives the test's function to every other file (--wrap, which the Makefile
 * passes for each symbol of the test's object that begins with __wrap_). Calls inside the file that has the real
 * function still reach the real one. */
#pragma once

#define REPLACES(name) extern __typeof__(name) name __asm__("__wrap_" #name)
