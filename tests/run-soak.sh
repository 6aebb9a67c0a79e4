#!/bin/sh
# The long tests: 200 kills of the daemon, 500 faults of three daemons, their networks and their database, upgrades under load, 60 kills in
# 20 nights of periodic runs, 100 with experiments in flight, 100 while packed results are stored and dropped, 30 while large reports are
# written, 200 of runners and server, 40 cuts of the network, memory over 200,000 webhooks, eight days on both engines, a minute of each
# attack from one address, valgrind over one whole round. About two hours, most of it as root because of the namespaces.
# SEED repeats the kills of an earlier run.
# usage: run-soak.sh BUILD_FOLDER
set -eu
cd "$(dirname "$0")/.."
OUTPOSTD=${OUTPOSTD:-$PWD/$1/release/outpostd}
OUTPOSTCTL=${OUTPOSTCTL:-$PWD/$1/release/outpostctl}
OUTPOST_RUNNER=${OUTPOST_RUNNER:-$PWD/$1/release/outpost-runner}
export OUTPOSTD OUTPOSTCTL OUTPOST_RUNNER

echo '== killed 200 times in 500 webhooks'
tools/node.sh tests/kill/kill.mjs --kills 200 --deliveries 500 --hangs 6 --rude 1 --share 0.5

echo '== 500 faults of three daemons, their networks and their database in 2,000 webhooks'
tools/node.sh tests/kill/cluster.mjs --faults 500 --deliveries 2000 --pushes 0.95 --lanes 4 --standby --cables

echo '== three daemons upgraded to the next release and back four times in 300 webhooks, and the upgrade of the release before this schema'
tools/node.sh tests/kill/upgrade.mjs --rounds 4 --deliveries 300
tools/node.sh tests/kill/upgrade.mjs --before --deliveries 100

echo '== killed 60 times in 20 nights'
tools/node.sh tests/kill/nightly.mjs --kills 60 --nights 20 --share 0.3

echo '== killed 100 times with experiments in flight'
tools/node.sh tests/kill/experiments.mjs --kills 100 --pulls 20

echo '== killed 100 times while packed results are stored, dropped and upgraded, and 30 times in large reports'
tools/node.sh tests/kill/packed.mjs --kills 100 --changes 60 --large 30

echo '== runners and server killed 200 times over 300 jobs'
tools/node.sh tests/kill/runners.mjs --kills 200 --jobs 300 --machines 4

echo '== their network cut and slowed 40 times'
tools/node.sh tests/kill/netns.mjs --cuts 40 --jobs 60

echo '== memory over 200,000 webhooks'
tools/node.sh tests/kill/memory.mjs --webhooks 200000

echo '== eight days on SQLite and on PostgreSQL'
tools/node.sh tests/history/engines.mjs --seeds 1

echo '== attacks from one address'
tools/node.sh tests/bench/attacks.mjs

echo '== valgrind over one whole round'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/outpostd" <<END
#!/bin/sh
exec valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 \\
	--log-file="$work/valgrind.%p" "$OUTPOSTD" "\$@"
END
chmod +x "$work/outpostd"
if ! OUTPOSTD=$work/outpostd PATIENCE=10 tools/node.sh --test tests/integration/round.test.mjs; then
	cat "$work"/valgrind.*
	exit 1
fi
# valgrind does not know mlock2(), which locks secrets; its message about that call has five lines
grep -hvE 'unhandled .* syscall: 325|write your own handler|README_MISSING_SYSCALL|consider this a bug|valgrind.org/support' "$work"/valgrind.* >"$work/errors" || true
cat "$work/errors"
[ ! -s "$work/errors" ]
echo 'no error, nothing definitely lost'
