#!/bin/sh
# Fails when a C file is not formatted as .clang-format says.
set -eu
cd "$(dirname "$0")/../.."
format=$(command -v clang-format-14 || command -v clang-format)
find src tests -name '*.[ch]' -not -path '*/node_modules/*' -print0 |
	xargs -0 "$format" --dry-run -Werror
