#!/bin/sh
# Fails when a function of callers.txt is used outside its allowed files or does not exist any more, and when SQL writes a
# column of callers.txt ("table.column") outside its allowed files, or updates it outside its allowed functions ("name()").
set -eu
cd "$(dirname "$0")/../.."
awk '
# Refuses SQL text that writes a column of other files.
function check_writes(sql,    column, part, place, is_update) {
	for (column in columns) {
		split(column, part, ".")
		place = index(sql, "UPDATE " part[1] " SET ")
		is_update = place && has_text(substr(sql, place), " WHERE ", "[ ,]" part[2] " = ")
		if ((column, FILENAME) in ok && (!is_update || !(column in has_functions) || (column, in_function) in ok)) {
			written[column] = 1
			if (is_update) updated[column, in_function] = 1
			continue
		}
		if (is_update) refuse(column)
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
	print FILENAME ":" FNR ": only the files and functions in tests/lint/callers.txt may write " column
	bad = 1
}
FILENAME == "tests/lint/callers.txt" {
	if (/^#/ || /^ *$/) next
	split($0, rule, ": *")
	n = split(rule[2], files, " +")
	if (rule[1] ~ /\./) columns[rule[1]] = 1
	else names[rule[1]] = 1
	for (i = 1; i <= n; i++) {
		if (files[i] !~ /\(\)$/) { ok[rule[1], "src/" files[i]] = 1; continue }
		sub(/\(\)$/, "", files[i])
		has_functions[rule[1]] = 1
		ok[rule[1], files[i]] = 1
		updaters[rule[1], files[i]] = 1
	}
	next
}
/^[ \t]*\/?\*/ { next } # a comment
/^[a-z].*\(/ { # the beginning of a function
	match($0, /[A-Za-z_0-9]+\(/)
	in_function = substr($0, RSTART, RLENGTH - 1)
}
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
	for (pair in updaters)
		if (!(pair in updated)) {
			split(pair, part, SUBSEP)
			print "tests/lint/callers.txt: " part[2] "() does not update " part[1]
			bad = 1
		}
	exit bad
}' tests/lint/callers.txt src/*/*.h src/*/*.c
