#!/bin/sh
# Fails when a source file includes a folder above it, or a third-party header
# outside its folder. layers.txt has the rules.
set -eu
cd "$(dirname "$0")/../.."
grep -n '^ *# *include' src/*/*.[ch] | awk -v rules=tests/lint/layers.txt '
BEGIN {
	while ((getline line < rules) > 0) {
		if (line ~ /^#/ || line ~ /^ *$/) continue
		split(line, rule, ": *")
		n = split(rule[2], allowed, " +")
		if (rule[1] ~ /^</) owned[rule[1]] = 1
		else known[rule[1]] = 1
		for (i = 1; i <= n; i++) ok[rule[1], allowed[i]] = 1
	}
}
{
	split($0, place, ":"); split(place[1], path, "/"); from = path[2]; why = ""
	if (!(from in known)) why = "folder " from " is not in layers.txt"
	else if (match($0, /<[^>]*>/)) {
		header = substr($0, RSTART, RLENGTH)
		if ((header in owned) && !((header, from) in ok)) why = header " is not for " from "/"
	} else if (match($0, /"[^"]*\//)) {
		to = substr($0, RSTART + 1, RLENGTH - 2)
		sub(/\/.*/, "", to)
		if (to != from && !((from, to) in ok)) why = from "/ may not include " to "/"
	} else why = "include paths start with the folder name"
	if (why != "") { print place[1] ":" place[2] ": " why; bad = 1 }
}
END { exit bad }'
