#!/bin/sh
# Runs unit tests, one at a time on each core, each with a time limit. A passed test prints one line.
# usage: run-unit.sh TEST...
set -u
# Freed memory stays in quarantine, so that a late access is found: 16 MiB hold it for long enough in a test, and memory that is used again
# is in the processor's caches. Eight frames say where memory was allocated.
ASAN_OPTIONS="quarantine_size_mb=16:malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export ASAN_OPTIONS
TSAN_OPTIONS="suppressions=$(dirname "$0")/tsan.supp ${TSAN_OPTIONS:-}"
export TSAN_OPTIONS
if [ "$1" = --one ]; then
	test=$2
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	start=$(date +%s%N)
	if timeout -k 5 600 "$test" >"$log" 2>&1; then
		n=$(sed -n 's/.*\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
		printf 'ok    %-34s %3s tests  %5d ms\n' "$(basename "$test")" "${n:-?}" \
			$((($(date +%s%N) - start) / 1000000))
	else
		# one write, so that the output of two failed tests does not mix
		printf 'FAIL  %-34s exit %d\n%s\n' "$(basename "$test")" "$?" \
			"$(grep -v -e '\[       OK \]' -e '\[ RUN      \]' "$log" | tail -n 60)"
		exit 1
	fi
	exit 0
fi
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" "$0" --one | tee "$lines"
passed=$(grep -c '^ok    ' "$lines")
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" = $# ]
