#!/bin/sh
# Whole-program tests: the built programs against the stand-in GitHub, on loopback. They mostly wait (GitHub's
# rules ask for a second between writes), so three files run at a time.
# usage: run-programs.sh BUILD_FOLDER [NAME]...   NAME: tests/integration/NAME.test.mjs; without a name: all tests
set -eu
cd "$(dirname "$0")/.."
OUTPOSTD=${OUTPOSTD:-$PWD/$1/asan/outpostd}
OUTPOSTCTL=${OUTPOSTCTL:-$PWD/$1/asan/outpostctl}
OUTPOST_RUNNER=${OUTPOST_RUNNER:-$PWD/$1/asan/outpost-runner}
OUTPOST_RUNNER_RELEASE=${OUTPOST_RUNNER_RELEASE:-$PWD/$1/release/outpost-runner}
# Histories play hundreds of daemons: the one without sanitizers.
OUTPOSTD_RELEASE=${OUTPOSTD_RELEASE:-$PWD/$1/release/outpostd}
export OUTPOSTD OUTPOSTCTL OUTPOST_RUNNER OUTPOST_RUNNER_RELEASE OUTPOSTD_RELEASE
shift
if [ $# -gt 0 ]; then
	for name; do
		set -- "$@" "tests/integration/$name.test.mjs"
		shift
	done
else
	set -- tests/web/ tests/github/ tests/integration/ tests/browser/
fi
exec tools/node.sh --test --test-concurrency="${AT_ONCE:-3}" "$@"
