#!/bin/sh
# One tarball with outpost-runner and every library that it needs, glibc and its loader included, so that it runs on any
# Linux of the same architecture, whatever is installed there.
# usage: runner-bundle.sh PROGRAM VERSION OUTPUT_FOLDER
set -eu
program=$1 version=$2 out=$3
here=$(cd "$(dirname "$0")/.." && pwd)
name=outpost-runner-$version-$(uname -m)
top=$out/$name

rm -rf "$top" "$out/$name.tar.gz"
mkdir -p "$top/bin" "$top/lib" "$top/licenses"
install -m 755 "$program" "$top/bin/outpost-runner"
strip "$top/bin/outpost-runner"

# "libx.so.1 => /path/libx.so.1 (0x…)" and the loader, which has no arrow
ldd "$program" | awk '$2 == "=>" { print $3; next } $1 ~ /^\// { print $1 }' | while read -r library; do
	cp -L "$library" "$top/lib/"
	package=$(dpkg -S "$(readlink -f "$library")" 2>/dev/null | head -n 1 | cut -d : -f 1)
	if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
		cp -L "/usr/share/doc/$package/copyright" "$top/licenses/$package"
	fi
done
loader=$(ldd "$program" | awk '$1 ~ /^\// { print $1 }')

cat > "$top/outpost-runner" <<WRAPPER
#!/bin/sh
# Starts bin/outpost-runner with the libraries beside it.
top=\$(cd "\$(dirname "\$(readlink -f "\$0")")" && pwd)
if [ -z "\${SSL_CERT_FILE:-}\${CURL_CA_BUNDLE:-}" ]; then
	for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
		[ -r "\$bundle" ] && { SSL_CERT_FILE=\$bundle; export SSL_CERT_FILE; break; }
	done
fi
OUTPOST_RUNNER_SELF=\$top/outpost-runner
export OUTPOST_RUNNER_SELF
exec "\$top/lib/$(basename "$loader")" --library-path "\$top/lib" "\$top/bin/outpost-runner" "\$@"
WRAPPER
chmod 755 "$top/outpost-runner"
cp "$here/config/runner.yml" "$top/"
sed 's|@PREFIX@/bin|/opt/outpost-runner|g' "$here/systemd/outpost-runner.service" >"$top/outpost-runner.service"
cp "$here/docs/runner.md" "$top/README.md"

tar -C "$out" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
rm -rf "$top"
ls -sh "$out/$name.tar.gz"
echo "on the machine that takes work (no root, no packages; bubblewrap for its sandbox): tar -xzf $name.tar.gz && cd $name && ./outpost-runner --help; README.md there goes on"
