#!/bin/sh
# Node.js 20 or newer: the machine's own, or the one that deps.sh fetched.
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -x "$here/build/node/bin/node" ]; then
	exec "$here/build/node/bin/node" "$@"
fi
exec node "$@"
