#!/bin/sh
# Fails when a function of callers.txt is used outside the files that may, or is no longer there.
set -eu
cd "$(dirname "$0")/../.."
awk '
FILENAME == "tests/lint/callers.txt" {
	if (/^#/ || /^ *$/) next
	split($0, rule, ": *")
	n = split(rule[2], files, " +")
	names[rule[1]] = 1
	for (i = 1; i <= n; i++) ok[rule[1], "src/" files[i]] = 1
	next
}
/^[ \t]*\/?\*/ { next } # a comment
{
	line = $0
	gsub(/"[^"]*"/, "", line)
	sub(/\/\*.*/, "", line)
	while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
		word = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (!(word in names)) continue
		if (FILENAME ~ /\.h$/) { declared[word] = 1; continue }
		if ((word, FILENAME) in ok) continue
		print FILENAME ":" FNR ": only the files in tests/lint/callers.txt may use " word "()"
		bad = 1
	}
}
END {
	for (word in names)
		if (!(word in declared)) { print "tests/lint/callers.txt: no header declares " word "()"; bad = 1 }
	exit bad
}' tests/lint/callers.txt src/*/*.h src/*/*.c
