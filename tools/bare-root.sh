#!/bin/sh
# A Debian with next to nothing in it, in a folder: a machine that never heard of us. From the mirror that apt uses here. As root.
# usage: bare-root.sh FOLDER
set -eu
root=$1
[ -f "$root/.complete" ] && exit 0
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
rm -rf "$root"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; exit 1; }
touch "$root/.complete"
