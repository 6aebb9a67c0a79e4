#!/bin/sh
# Fails when SQL compares a column `state` or `status` with a name that no list of states in src/model/ has, so that a renamed
# state leaves no statement behind that never matches. SQL contains the names as literals, because SQLite uses a partial index
# only if a statement has the literal text of the index's condition.
set -eu
cd "$(dirname "$0")/../.."
awk '
function check_names(sql,    list, name) {
	while (match(sql, /(state|status)\)* *(=|<>|WHEN|IN|NOT IN) *\(?'\''[^)]*/)) {
		list = substr(sql, RSTART, RLENGTH)
		sql = substr(sql, RSTART + RLENGTH)
		# a list of names (a, b) or a single name
		sub(/^[^'\'']*/, "", list)
		while (match(list, /^'\''[^'\'']*'\''/)) {
			name = substr(list, 2, RLENGTH - 2)
			n_checked++
			if (!(name in names)) { print FILENAME ":" FNR ": no list of states has " name; bad = 1 }
			list = substr(list, RLENGTH + 1)
			if (!sub(/^ *, *'\''/, "'\''", list)) break
		}
	}
}
!has_lists {
	line = $0
	if (line ~ /define [A-Z_]+_SQL_[A-Z]+ +"/) { # the same name as a literal
		split(line, part, "'\''")
		if (!(part[2] in names)) { print FILENAME ":" FNR ": no list of states has " part[2]; bad = 1 }
		next
	}
	if (line !~ /X\(|WORDS_DEFINE\(/) next
	while (match(line, /X\([A-Z_]+(, *"[a-z_]+")?|"[a-z_]+"/)) {
		name = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (!sub(/.*"(.*)"/, "&", name)) sub(/X\(/, "", name)
		gsub(/X\([A-Z_]+, *|"/, "", name)
		names[name] = 1
	}
	next
}
FNR == 1 { sql = "" }
/^[ \t]*\/?\*/ { next } # a comment
{
	line = $0
	sub(/\/\*.*/, "", line)
	while (match(line, /"[^"]*"/)) {
		sql = sql substr(line, RSTART + 1, RLENGTH - 2)
		line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
	}
	if (line ~ /;/) { check_names(sql); sql = "" } # the end of a statement
}
END {
	if (n_checked < 100) { print "only " n_checked " names were found in SQL"; bad = 1 }
	exit bad
}' src/model/record_states.h src/model/states.h src/model/states.c src/model/history.h has_lists=1 src/*/*.h src/*/*.c
