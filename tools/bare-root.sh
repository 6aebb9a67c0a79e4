#!/bin/sh
# A Debian with next to nothing in it, in a folder: a machine that never heard of us. It has a shell, its tools and their
# libraries, from the mirror that apt uses here: unpacked and not configured, because that takes most of the time. As root.
# usage: bare-root.sh FOLDER
set -eu
root=$(realpath -m "$1")
[ -f "$root/.complete" ] && exit 0
rm -rf "$root"
mkdir -p "$root/var/cache/archives/partial"
cd "$root"
# /dev/null: as if nothing was installed, so that apt adds every dependency
download() {
	apt-get -q -y -o Dir::State::status=/dev/null -o Dir::Cache::archives="$PWD/var/cache/archives" -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
		--download-only --no-install-recommends install base-files base-passwd coreutils dash grep libc-bin
}
{ download || { apt-get update -q && download; }; } >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; exit 1; }
for folder in bin sbin lib lib64; do
	mkdir -p "usr/$folder"
	ln -s "usr/$folder" "$folder"
done
for package in var/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink
done
rm -r var/cache/archives
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
chroot . /sbin/ldconfig
touch .complete
