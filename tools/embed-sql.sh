#!/bin/sh
# Prints a C file that holds the scripts src/db/schema_1.sql, schema_2.sql, … as SCHEMA_STEPS[] (db/schema.h):
# tools/embed-sql.sh > OUT.c
set -eu
cd "$(dirname "$0")/.."
echo '#include "db/schema.h"'
n=0
while [ -f "src/db/schema_$((n + 1)).sql" ]; do
	n=$((n + 1))
	printf '\nstatic const char STEP_%d[] =\n' "$n"
	sed -e 's/--.*//' -e 's/[\\"]/\\&/g' -e '/^ *$/d' -e 's/.*/    "&\\n"/' "src/db/schema_$n.sql"
	echo '    ;'
done
printf '\nconst char *const SCHEMA_STEPS[SCHEMA_VERSION] = {'
seq -s ', ' -f 'STEP_%g' "$n" | tr -d '\n'
echo '};'
