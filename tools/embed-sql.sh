#!/bin/sh
# Prints a C file that holds the scripts of src/db for db/schema.h: schema_1.sql, schema_2.sql, … as SCHEMA_STEPS[],
# postgres_schema.sql and postgres_functions.sql as POSTGRES_SCHEMA, and postgres_N.sql as POSTGRES_STEPS[N].
# tools/embed-sql.sh > OUT.c
set -eu
cd "$(dirname "$0")/.."
# array NAME FILE...
array() {
	printf '\n%s =\n' "$1"
	shift
	cat "$@" | sed -e 's/--.*//' -e 's/[\\"]/\\&/g' -e '/^ *$/d' -e 's/.*/    "&\\n"/'
	echo '    ;'
}
echo '#include "db/schema.h"'
n=0
while [ -f "src/db/schema_$((n + 1)).sql" ]; do
	n=$((n + 1))
	array "static const char STEP_$n[]" "src/db/schema_$n.sql"
done
printf '\nconst char *const SCHEMA_STEPS[SCHEMA_VERSION] = {'
seq -s ', ' -f 'STEP_%g' "$n" | tr -d '\n'
echo '};'
array 'const char POSTGRES_SCHEMA[]' src/db/postgres_schema.sql src/db/postgres_functions.sql
steps=
for version in $(seq "$n"); do
	if [ -f "src/db/postgres_$version.sql" ]; then
		array "static const char POSTGRES_STEP_$version[]" "src/db/postgres_$version.sql"
		steps="$steps[$version] = POSTGRES_STEP_$version, "
	fi
done
printf '\nconst char *const POSTGRES_STEPS[SCHEMA_VERSION + 1] = {%s[0] = NULL};\n' "$steps"
