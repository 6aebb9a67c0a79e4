#!/bin/sh
# Runs every fuzz target, one at a time on each core, for a number of executions, or for a number of seconds each.
# usage: run.sh FOLDER [RUNS] [SECONDS]; new inputs are kept under build/fuzz-corpus.
#        run.sh --replay FOLDER: targets with the main() of replay.c, which play their seeds and damaged copies of them.
# Each run of `markdown` writes a whole comment and reads it with GitHub's reader, which takes twenty times as long as a run of
# another target. It gets a quarter of the runs, and its seeds already reach what four times as many runs find.
set -eu
if [ "$1" = --replay-one ]; then
	corpus=tests/fuzz/corpus/$(basename "$2" | sed 's/^fuzz_[a-z]*_//')
	[ -d "$corpus" ] || corpus=
	# shellcheck disable=SC2086 # no corpus is no argument
	if ! text=$(timeout -k 5 300 "$2" $corpus 2>&1); then
		printf 'FAIL  %s\n%s\n' "$(basename "$2")" "$(printf '%s\n' "$text" | tail -n 60)"
		exit 1
	fi
	printf 'ok    %-34s %s\n' "$(basename "$2")" "$text"
	exit 0
fi
if [ "$1" = --one ]; then
	target=$4
	what=$(basename "$target" | sed 's/^fuzz_[a-z]*_//')
	kept=build/fuzz-corpus/$what
	runs=$2
	[ "$what" != markdown ] || runs=$((runs / 4))
	mkdir -p "$kept"
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if "$target" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		$(if [ -n "$3" ]; then echo "-max_total_time=$3"; else echo "-runs=$runs"; fi) \
		"$kept" $(if [ -d "tests/fuzz/corpus/$what" ]; then echo "tests/fuzz/corpus/$what"; fi) \
		>"$log" 2>&1; then
		printf 'ok    %-34s %s\n' "$(basename "$target")" "$(grep -E '^Done' "$log" | tail -n 1)"
	else
		printf 'FAIL  %s\n%s\n' "$(basename "$target")" "$(tail -n 60 "$log")"
		exit 1
	fi
	exit 0
fi
cd "$(dirname "$0")/../.."
# as in run-unit.sh
export ASAN_OPTIONS="quarantine_size_mb=16:malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
if [ "$1" = --replay ]; then
	find "$2" -maxdepth 1 -name 'fuzz_*' -type f -executable -print0 | sort -z |
		xargs -0 -n 1 -P "$(nproc)" tests/fuzz/run.sh --replay-one
	exit
fi
find "$1" -maxdepth 1 -name 'fuzz_*' -type f -executable -print0 | sort -z |
	xargs -0 -n 1 -P "$(nproc)" tests/fuzz/run.sh --one "${2:-20000}" "${3:-}"
