#!/bin/sh
# A Python with PyTorch and pytest: the one that is here, else Debian's (some 400 MB with what they need).
set -eu
for python in "${PYTHON:-python3}" python3 /usr/bin/python3; do
	if "$python" -c 'import torch, pytest' 2>/dev/null; then exit 0; fi
done
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
echo 'installing python3-torch, python3-torchvision and python3-pytest'
as_root apt-get update -q
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-torch python3-torchvision python3-pytest
