#!/bin/sh
# Runs unit tests one after the other; a passing one is one line. The time limit ends a test that hangs.
# usage: run-unit.sh TEST...
set -u
export TSAN_OPTIONS="suppressions=$(dirname "$0")/tsan.supp ${TSAN_OPTIONS:-}"
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for test in "$@"; do
	start=$(date +%s%N)
	if timeout -k 5 900 "$test" >"$log" 2>&1; then
		n=$(sed -n 's/.*\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -n 1)
		printf 'ok    %-34s %3s tests  %5d ms\n' "$(basename "$test")" "${n:-?}" \
			$((($(date +%s%N) - start) / 1000000))
		passed=$((passed + 1))
	else
		code=$?
		printf 'FAIL  %-34s exit %d\n' "$(basename "$test")" "$code"
		grep -v -e '\[       OK \]' -e '\[ RUN      \]' "$log" | tail -n 60
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
