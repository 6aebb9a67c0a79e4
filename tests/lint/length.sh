#!/bin/sh
# Lists files over 500 lines and function bodies over 60 lines, as a hint to split them. It does not fail.
cd "$(dirname "$0")/../.." || exit 1
awk '
FNR == 1  { body = 0 }
/^\{/     { body = FNR }
/^\}/     { if (body && FNR - body - 1 > 60) print FILENAME ":" body ": function of " FNR - body - 1 " lines"; body = 0 }
FNR == 501 { print FILENAME ": over 500 lines" }' src/*/*.c
