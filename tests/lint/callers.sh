#!/bin/sh
# Fails when a function of callers.txt is used outside its allowed files or does not exist any more, and when SQL writes a
# column of callers.txt ("table.column") outside its allowed files.
set -eu
cd "$(dirname "$0")/../.."
awk '
# Refuses SQL text that writes a column of other files.
function check_writes(sql,    column, part, place) {
	for (column in columns) {
		split(column, part, ".")
		if ((column, FILENAME) in ok) { written[column] = 1; continue }
		place = index(sql, "UPDATE " part[1] " SET ")
		if (place && has_text(substr(sql, place), " WHERE ", "[ ,]" part[2] " = ")) refuse(column)
		place = index(sql, "INSERT INTO " part[1] " (")
		if (place && has_text(substr(sql, place), ")", "[ (,]" part[2] "[,)]")) refuse(column)
	}
}
function has_text(sql, end, pattern,    n) {
	n = index(sql, end)
	if (n) sql = substr(sql, 1, n)
	return sql ~ pattern
}
function refuse(column) {
	print FILENAME ":" FNR ": only the files in tests/lint/callers.txt may write " column
	bad = 1
}
FILENAME == "tests/lint/callers.txt" {
	if (/^#/ || /^ *$/) next
	split($0, rule, ": *")
	n = split(rule[2], files, " +")
	if (rule[1] ~ /\./) columns[rule[1]] = 1
	else names[rule[1]] = 1
	for (i = 1; i <= n; i++) ok[rule[1], "src/" files[i]] = 1
	next
}
/^[ \t]*\/?\*/ { next } # a comment
{
	line = $0
	sub(/\/\*.*/, "", line)
	while (match(line, /"[^"]*"/)) {
		sql = sql substr(line, RSTART + 1, RLENGTH - 2)
		line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
	}
	if (line ~ /;/) { # the end of a statement
		if (sql ~ /UPDATE |INSERT INTO /) check_writes(sql)
		sql = ""
	}
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
	for (column in columns)
		if (!(column in written)) { print "tests/lint/callers.txt: no file in its list writes " column; bad = 1 }
	exit bad
}' tests/lint/callers.txt src/*/*.h src/*/*.c
