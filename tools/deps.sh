#!/bin/sh
# Installs what building and testing need and the machine lacks: Debian's packages of
# tools/debian-packages.txt, a Node.js of version 20 or newer, and the npm packages of
# package-lock.json. Quick and quiet when everything is there.
# usage: deps.sh [--build | --npm]   --build: only the packages that building needs, and Node.js; --npm: only those of npm
set -eu
cd "$(dirname "$0")/.."

# Compares contents, because a checkout gives package-lock.json a new time. The lock: make calls this beside another deps.sh.
npm_packages() {
	stamp=node_modules/.outpost
	exec 9<package-lock.json
	flock 9
	cmp -s package-lock.json "$stamp" && return
	# npm's own mark
	[ ! -s "$stamp" ] && [ node_modules/.package-lock.json -nt package-lock.json ] ||
		npm ci --no-audit --no-fund --loglevel=error
	cp --remove-destination package-lock.json "$stamp"
}
if [ "${1:-}" = --npm ]; then
	npm_packages
	exit
fi

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

missing=
for package in $(sed -e "${1:+/^# outpost-runner/,\$d}" -e 's/#.*//' tools/debian-packages.txt); do
	dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing="$missing $package"
done
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
if [ -n "$missing" ]; then
	echo "installing:$missing"
	as_root apt-get update -q
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
fi

# Debian 12's own Node.js is 18; the stand-in GitHub wants 20. The registry has the binary.
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ] && [ ! -x build/node/bin/node ]; then
	mkdir -p build/node-package
	arch=$(node -p process.arch)
	npm install --silent --no-save --ignore-scripts --prefix build/node-package "node-linux-$arch@20"
	ln -sfn "node-package/node_modules/node-linux-$arch" build/node
fi

[ "${1:-}" = --build ] || npm_packages
