#!/bin/bash
# Runs everything of `make check`. The whole-program tests mostly wait, so the phases that need the processor run at the same time:
# lints, unit tests, ThreadSanitizer, fuzz targets. Prints a line with the times of each phase when it ends, and at the end the
# first lines of every failure. BUILD_FOLDER/check has each phase's output.
# usage: check.sh BUILD_FOLDER [all]   all: also the tests that take longest: on PostgreSQL, of several daemons, of days of history, with the
#        fuzzer; and ThreadSanitizer for all tests of the layers with threads
set -u
cd "$(dirname "$0")/.."
out=$1
extent=${2:-daily}
logs=$out/check
jobs=$(nproc)
make=(make --no-print-directory O="$out" WERROR=1)
rm -rf "$logs"
mkdir -p "$logs"
# seconds of real time, of user time and of system time
TIMEFORMAT='%R %U %S'

trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 1' INT TERM HUP

# phase NAME COMMAND...
phase()
{
	local name=$1 word=ok
	shift
	{ time "$@" >"$logs/$name.log" 2>&1 || { word=FAIL; echo "$name" >>"$logs/failed"; }; } 2>"$logs/$name.time"
	awk -v word="$word" -v name="$name" '{ printf "%-5s phase %-15s %5.0f s  cpu %5.0f s\n", word, name, $1, $2 + $3 }' "$logs/$name.time"
	[ $word = ok ]
}

# The first lines of a phase's failures.
failures_of()
{
	if [ -s "$logs/$1.log" ] && grep -q '^---- failed ----' "$logs/$1.log"; then
		sed -n '/^---- failed ----/,$p' "$logs/$1.log" | tail -n 150
	else
		grep -A 12 -E '^FAIL|error:|warning:|undefined reference|\*\*\*' "$logs/$1.log" | head -n 60 | grep . || tail -n 30 "$logs/$1.log"
	fi
}

# Programs that start servers of PostgreSQL and several daemons, play days of history or each short story in a second mode, kill or crowd
# a daemon for long, or follow the commands of the documents on an empty machine.
only_all=(balancer cluster cluster-limits cluster-trouble crowded doc-commands fairness history-days history-modes kill-cluster kill-packed
	logs-database pooler standby store-copy upgrade)

# More random histories of packed results, also after a daily check, which played fewer of them.
if [ "$extent" = all ]; then
	export OUTPOST_PACKED_RUNS=12
	rm -f "$out/asan/tests/test_store_packed.passed"
fi

programs()
{
	local chosen=()
	if [ "$extent" = daily ]; then
		mapfile -t chosen < <(ls tests/{integration,browser,github,web}/*.test.mjs |
			grep -v -x -F "$(printf 'tests/integration/%s.test.mjs\n' "${only_all[@]}")")
	fi
	tests/run-programs.sh "$out" "${chosen[@]}" | while IFS= read -r line; do
		printf '%s\n' "$line"
		printf '%s\n' "$line" >&3
	done
	return "${PIPESTATUS[0]}"
}

# The phases that need only the processor, in two chains at the same time, because one alone leaves a core idle at times.
# They have a lower priority than the programs, which then begin their next wait early. A unit test whose program is the one that passed
# last time is not repeated.
beside_programs()
{
	renice -n 10 -p $BASHPID >/dev/null
	{
		phase unit-build "${make[@]}" VARIANT=asan -j"$jobs" tests && {
			[ "$extent" = all ] && phase postgres env AT_MOST=3 "${make[@]}" PART=1 run-postgres &
			phase unit "${make[@]}" VARIANT=asan -k -j"$((jobs + 2))" run-changed
			wait
		}
	} &
	phase lint "${make[@]}" -j"$jobs" lint
	phase lint-sql "${make[@]}" lint-sql
	phase tsan-build "${make[@]}" tsan-tests && phase tsan "${make[@]}" VARIANT=tsan -k -j"$jobs" run-tsan
	if [ "$extent" = all ]; then
		phase fuzz-build "${make[@]}" VARIANT=fuzz -j"$jobs" fuzzers && phase fuzz tests/fuzz/run.sh "$out/fuzz/fuzz" 20000
	else # without the fuzzer, which needs a build of its own
		phase replay-build "${make[@]}" VARIANT=asan -j"$jobs" replays && phase replay tests/fuzz/run.sh --replay "$out/asan/replay"
	fi
	wait
}

# npm and apt mostly wait for the network and for one processor, so the compiler runs beside them.
everything_built()
{
	local npm packages result=0
	phase deps tools/deps.sh --build || return
	{
		phase npm tools/deps.sh --npm && phase rig tools/node.sh tests/github/prepare.mjs
	} &
	npm=$!
	phase packages tools/deps.sh &
	packages=$!
	phase build "${make[@]}" -j"$jobs" all && phase build-asan "${make[@]}" VARIANT=asan -j"$jobs" all || result=1
	# after a failure as well: an installation that is cut off would have to be repaired
	wait "$npm" || result=1
	wait "$packages" || result=1
	return $result
}

exec 3>&1
if everything_built; then
	beside_programs &
	beside=$!
	phase programs programs
	# a phase that fails is in the list already
	wait "$beside" || [ -s "$logs/failed" ] || echo beside_programs >>"$logs/failed"
fi

echo
if [ -e "$logs/failed" ]; then
	while read -r name; do
		printf '\n==== %s\n' "$name"
		failures_of "$name"
	done <"$logs/failed"
	printf '\nfailed: %s\n' "$(paste -s -d ' ' "$logs/failed")"
	exit 1
fi
echo "all passed in $SECONDS s"
