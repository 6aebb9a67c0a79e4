#!/bin/sh
# Lists the static names that more than two files of src/ use, and fails when there are more than 20. A static function
# contains its noun (find_runner, not find), so that a search for its name finds one thing.
set -eu
cd "$(dirname "$0")/../.."
awk '
/^static / {
	line = $0
	gsub(/\/\*.*|__attribute__ *\(\([^)]*\)*\)\)|PRINTF\([0-9, ]*\)/, "", line)
	sub(/[[(=;{].*/, "", line) # the name is the last word before these
	if (line ~ /(struct|enum|union|void) *$/ || !match(line, /[A-Za-z_][A-Za-z_0-9]* *$/)) next
	name = substr(line, RSTART); sub(/ *$/, "", name)
	if ((name, FILENAME) in seen) next
	seen[name, FILENAME] = 1
	place = FILENAME; sub(/^src\//, "", place)
	files[name] = files[name] " " place
	n[name]++
}
END {
	for (name in n) if (n[name] > 2) { print name ":" files[name] | "sort"; over++ }
	close("sort")
	if (over > 20) print over " static names are in more than two files; at most 20 may be" > "/dev/stderr"
	exit over > 20
}' src/*/*.[ch]
