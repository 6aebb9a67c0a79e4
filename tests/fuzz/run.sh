#!/bin/sh
# Runs every fuzz target for a number of executions, or for a number of seconds each.
# usage: run.sh FOLDER [RUNS] [SECONDS]; new inputs are kept under build/fuzz-corpus.
set -eu
cd "$(dirname "$0")/../.."
folder=$1
runs=${2:-20000}
seconds=${3:-}
for target in "$folder"/fuzz_*; do
	[ -x "$target" ] || continue
	what=$(basename "$target" | sed 's/^fuzz_[a-z]*_//')
	kept=build/fuzz-corpus/$what
	mkdir -p "$kept"
	log=$(mktemp)
	if "$target" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		$(if [ -n "$seconds" ]; then echo "-max_total_time=$seconds"; else echo "-runs=$runs"; fi) \
		"$kept" $(if [ -d "tests/fuzz/corpus/$what" ]; then echo "tests/fuzz/corpus/$what"; fi) \
		>"$log" 2>&1; then
		printf 'ok    %-34s %s\n' "$(basename "$target")" "$(grep -E '^Done' "$log" | tail -n 1)"
	else
		printf 'FAIL  %s\n' "$(basename "$target")"
		tail -n 60 "$log"
		exit 1
	fi
	rm -f "$log"
done
