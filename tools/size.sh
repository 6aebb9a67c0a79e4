#!/bin/sh
# The size and shape of src/: `make size`. docs/architecture.md ("Figures") explains each figure. With --check it fails when
# a figure is over its limit.
set -eu
cd "$(dirname "$0")/.."
colour=; [ -t 1 ] && colour=1
names=$(tests/lint/names.sh 2>/dev/null | wc -l) || true
awk -v names="$names" -v colour="$colour" -v check="${1:-}" '
function folder_of(path,    part) { split(path, part, "/"); return part[2] }
# A file is short, or a header lacks its thread line, once it has been read to its end.
function end_file() {
	if (file == "") return
	if (file ~ /\.c$/ && n_lines < 60) { short[++n_short] = file; }
	if (file ~ /\.h$/ && !has_thread) { threadless[++n_threadless] = file; }
}
function paint(text, code) { return colour ? "\033[" code "m" text "\033[0m" : text }
# One figure, and its limit where it has one. low is the least that it may be, high the most.
function figure(what, value, low, high,    limit, bad) {
	bad = (low != "" && value < low) || (high != "" && value > high)
	limit = low != "" ? low " to " high : high != "" ? "at most " high : ""
	printf "%-52s %s  %s\n", what, paint(sprintf("%8d", value), bad ? "31" : "32"), limit
	if (bad) n_bad++
}
function list(paths, n,    i) { if (colour == "" || check != "") for (i = 1; i <= n; i++) print "    " paths[i] }

FNR == 1 { end_file(); file = FILENAME; folder = folder_of(file); has_thread = n_lines = body = comment = 0; files[folder]++; n_files++ }
{ n_lines++; lines[folder]++; total++ }
tolower($0) ~ /thread/ { has_thread = 1 }
# The brace of a function stands alone in the first column; those of structs, enums and tables end a line.
/^\{/ { body = FNR }
/^[a-z].*\) \{ .*\}$/ { n_bodies++; by_length[1]++ } # a function of one line
/^\}/ { if (body) { n_bodies++; length_of[n_bodies] = FNR - body - 1; by_length[FNR - body - 1]++; body = 0 } }
/rows_(int|dup|text|is_null|blob|real)\(/ && folder != "db" {
	line = $0
	positional += gsub(/rows_(int|dup|text|is_null|blob|real)\(/, "", line)
}
END {
	end_file()
	printf "%-12s %8s %6s\n", "folder", "lines", "files"
	for (folder in lines) printf "%-12s %8d %6d\n", folder, lines[folder], files[folder] | "sort"
	close("sort")
	print ""
	p50 = p90 = -1
	for (i = 0; seen < n_bodies; i++) {
		if (!(i in by_length)) continue
		seen += by_length[i]; longest = i
		if (p50 < 0 && seen >= n_bodies * 0.5) p50 = i
		if (p90 < 0 && seen >= n_bodies * 0.9) p90 = i
	}
	figure("lines", total, "", 100500)
	figure("files", n_files, "", 510)
	figure("functions", n_bodies, "", "")
	figure("function length, half of them at most", p50, "", "")
	figure("function length, nine of ten at most (p90)", p90, 25, 45)
	figure("function length, the longest", longest, "", 80)
	figure("static names in more than two files", names, "", 20)
	figure("columns read by position outside src/db", positional, "", 0)
	figure("headers that do not state a thread", n_threadless, "", 0)
	list(threadless, n_threadless)
	figure(".c files under 60 lines", n_short, "", "")
	list(short, n_short)
	if (check != "" && n_bad) { print n_bad " figures are over their limits" > "/dev/stderr"; exit 1 }
}' src/*/*.[ch]
