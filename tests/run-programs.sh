#!/bin/sh
# Whole-program tests: the built programs against the fake GitHub on loopback, at most AT_MOST files (12) at a time. With
# OUTPOST_TEST_DATABASE each daemon has a database of PostgreSQL:
# node tests/postgres.mjs tests/run-programs.sh BUILD_FOLDER [NAME]...
# usage: run-programs.sh BUILD_FOLDER [NAME]...   NAME: tests/integration/NAME.test.mjs, or a file; without a name: all tests
set -eu
cd "$(dirname "$0")/.."
OUTPOSTD=${OUTPOSTD:-$PWD/$1/asan/outpostd}
OUTPOSTCTL=${OUTPOSTCTL:-$PWD/$1/asan/outpostctl}
OUTPOST_RUNNER=${OUTPOST_RUNNER:-$PWD/$1/asan/outpost-runner}
OUTPOST_RUNNER_RELEASE=${OUTPOST_RUNNER_RELEASE:-$PWD/$1/release/outpost-runner}
# Histories play hundreds of daemons, and one test runs outpostctl hundreds of times, so these use the build without sanitizers.
OUTPOSTCTL_RELEASE=${OUTPOSTCTL_RELEASE:-$PWD/$1/release/outpostctl}
OUTPOSTD_RELEASE=${OUTPOSTD_RELEASE:-$PWD/$1/release/outpostd}
export OUTPOSTD OUTPOSTCTL OUTPOSTCTL_RELEASE OUTPOST_RUNNER OUTPOST_RUNNER_RELEASE OUTPOSTD_RELEASE
logs=$1/program-logs${OUTPOST_TEST_DATABASE:+-postgres}
shift
# as in run-unit.sh
export ASAN_OPTIONS="quarantine_size_mb=16:malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
if [ $# -gt 0 ]; then
	for name; do
		case $name in
		*.mjs) set -- "$@" "$name" ;;
		*) set -- "$@" "tests/integration/$name.test.mjs" ;;
		esac
		shift
	done
else
	set -- tests/integration/*.test.mjs tests/browser/*.test.mjs tests/github/*.test.mjs tests/web/*.test.mjs
fi
if [ -x "$OUTPOSTD_RELEASE" ]; then
	mkdir -p "$logs"
	OUTPOST_EMPTY_DATABASE=$(tools/node.sh tests/integration/lib/empty-database.mjs "$PWD/$logs/empty.db")
	export OUTPOST_EMPTY_DATABASE
fi
exec tools/node.sh tests/run-programs.mjs "${AT_MOST:-12}" "$logs" "$@"
