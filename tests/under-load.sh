#!/bin/sh
# Runs a command while the machine is kept busy, or on a single core. The load ends with the command in any case, and each
# loop by itself after LOAD_SECONDS of a core's time.
# usage: under-load.sh busy|one-core COMMAND...
set -u
# because everything takes several times as long
export PROGRAM_MINUTES="${PROGRAM_MINUTES:-60}"
mode=$1
shift
busy=
trap 'for pid in $busy; do kill "$pid" 2>/dev/null; done' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
case $mode in
busy)
	n=$((2 * $(nproc)))
	for _ in $(seq "$n"); do
		(
			trap - EXIT
			ulimit -t "${LOAD_SECONDS:-3600}"
			while :; do :; done
		) &
		busy="$busy $!"
	done
	echo "$n busy loops run beside: $*"
	;;
one-core)
	core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
	taskset -cp "$core" $$ >/dev/null || exit
	echo "on core $core alone: $*"
	;;
*)
	echo "usage: $0 busy|one-core COMMAND..." >&2
	exit 2
	;;
esac
"$@" &
command=$!
trap 'kill "$command" 2>/dev/null; exit 130' INT
trap 'kill "$command" 2>/dev/null; exit 143' TERM
wait "$command"
