#!/bin/sh
# One run of the suite: results/outpost.json and results/junit.xml below the present folder, or below
# $OUTPOST_RESULTS. More arguments go to pytest: ./run.sh --device npu --skip-model mobilenet_v2:bf16
set -u
suite=$(cd "$(dirname "$0")" && pwd)
results=${OUTPOST_RESULTS:-results}

# The Python that has PyTorch: $PYTHON, else the first that can import it.
for python in "${PYTHON:-python3}" python3 /usr/bin/python3; do
	"$python" -c 'import torch, pytest' 2>/dev/null && break
done
"$python" -c 'import torch, pytest' || {
	echo "no Python with torch and pytest: set PYTHON, or install python3-torch and python3-pytest" >&2
	exit 2
}
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest -p no:cacheprovider --rootdir "$suite" "$suite" \
	--outpost-report="$results/outpost.json" --junitxml="$results/junit.xml" "$@"
