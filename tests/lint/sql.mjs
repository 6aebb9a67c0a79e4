// Prepares each SQL statement of src/ on SQLite and on PostgreSQL, and fails on a statement that either engine rejects:
// one SQL text serves both.
//
//   node tests/lint/sql.mjs               also fails when src/db/postgres_schema.sql is stale
//   node tests/lint/sql.mjs --list        prints the statements instead
//   node tests/lint/sql.mjs --schema      writes src/db/postgres_schema.sql
//
// The compiler's preprocessor prints each statement as the compiler sees it: with expanded macros and the bound values. SQLite gets
// the tables from src/db/schema_*.sql, PostgreSQL a translation of the same tables, src/db/postgres_schema.sql, and each statement as
// src/db/postgres_text.c rewrites it.
import { execFileSync, spawnSync, execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startPostgres } from '../postgres.mjs';

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
process.chdir(ROOT);

/* ---- the statements ---- */

const CALL = /\bdb_(?:exec|exec_count|insert|int|text|rows|exec_int|exec_rows)_values\(/g;
const WRITES = /^(?:WITH\b.*?\)\s*)?(?:INSERT|REPLACE|UPDATE|DELETE)\b/;
// The arguments before the text, by function: db_int_values(d, fallback, sql, values).
const PG_TYPES = { text: 'text', int: 'bigint', real: 'double precision', blob: 'bytea', null: 'unknown' };

// Splits at the commas outside brackets and strings. from: the place after the opening bracket. Returns the parts and the place
// after the closing bracket.
function argumentsAt(code, from) {
  const parts = [];
  let depth = 0, start = from;
  for (let i = from; i < code.length; i++) {
    const c = code[i];
    if (c === '"' || c === "'") {
      for (i++; i < code.length && code[i] !== c; i++) if (code[i] === '\\') i++;
    } else if ('([{'.includes(c)) {
      depth++;
    } else if (')]}'.includes(c)) {
      if (depth-- === 0) return { parts: [...parts, code.slice(start, i)], end: i + 1 };
    } else if (c === ',' && depth === 0) {
      parts.push(code.slice(start, i));
      start = i + 1;
    }
  }
  throw new Error('a call without an end');
}

// The text of adjacent string literals, or null for any other expression.
function literal(expression) {
  let text = '', rest = expression.trim();
  while (rest) {
    const match = /^"((?:[^"\\]|\\.)*)"\s*/.exec(rest);
    if (!match) return null;
    text += match[1].replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
    rest = rest.slice(match[0].length);
  }
  return text;
}

function typeOf(value) {
  if (/^\s*(?:value_text|guid_value)\(|VALUE_TEXT\b/.test(value)) return 'text';
  if (/VALUE_INT\b/.test(value)) return 'int';
  if (/VALUE_REAL\b/.test(value)) return 'real';
  if (/VALUE_BLOB\b/.test(value)) return 'blob';
  return 'null';
}

// The source of the preprocessor's output, from '# LINE "FILE"'.
function placeAt(code, at) {
  const marks = [...code.slice(0, at).matchAll(/^# (\d+) "([^"]*)".*\n/gm)];
  const mark = marks.at(-1);
  const lines = code.slice(mark.index + mark[0].length, at).split('\n').length - 1;
  return `${mark[2]}:${Number(mark[1]) + lines}`;
}

async function statementsOf(file) {
  const { stdout: code } = await promisify(execFile)('gcc', ['-E', '-std=gnu11', '-D_GNU_SOURCE', '-include', 'src/base/base.h', '-Isrc', file], { maxBuffer: 1 << 28 });
  const found = [];
  for (const call of code.matchAll(CALL)) {
    const { parts } = argumentsAt(code, call.index + call[0].length);
    const sql = literal(parts[/_int_|_insert_/.test(call[0]) ? 2 : 1] ?? ''); // of an INSERT the text for PostgreSQL
    const place = placeAt(code, call.index);
    if (sql === null || !place.startsWith('src/') || /^src\/db\/db_(?:sqlite|postgres)/.test(place)) continue; // a declaration, or the engine's own call
    const list = /\{(.*)\}/s.exec(parts.at(-1))?.[1] ?? '';
    const values = argumentsAt(`${list})`, 0).parts.slice(0, -1); // VALUE_END ends each list
    found.push({ place, sql: sql.replace(/\s+/g, ' ').trim(), types: values.map(typeOf), mayWrite: /^db_(exec|insert)_/.test(call[0]) });
  }
  return found;
}

async function allStatements() {
  const files = readdirSync('src').flatMap((folder) => readdirSync(`src/${folder}`).filter((name) => name.endsWith('.c')).map((name) => `src/${folder}/${name}`))
    .filter((file) => /db_(exec|exec_count|insert|int|has|text|rows|exec_int|exec_rows)\(|RECORD_/.test(readFileSync(file, 'utf8')));
  const found = [];
  const next = async () => {
    for (let file; (file = files.pop()); ) found.push(...await statementsOf(file));
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, next));
  return found.sort((a, b) => (a.place < b.place ? -1 : 1));
}

// A statement that changes rows needs a transaction (db_exec() and similar), so that the type of the connection distinguishes
// readers and writers.
function misplaced(statements) {
  const errors = new Map();
  statements.forEach(({ sql, mayWrite }, i) => {
    if (WRITES.test(sql) && !mayWrite) errors.set(i, 'a statement that writes is executed as a read: use db_exec() or db_exec_rows()');
    if (mayWrite && /^SELECT\b/.test(sql)) errors.set(i, 'a statement that reads is executed as a write');
  });
  return errors;
}

/* ---- the engines: each returns the errors by the number of the statement ---- */

function sqliteErrors(statements, folder) {
  const file = path.join(folder, 'outpost.db');
  const schema = readdirSync('src/db').filter((name) => /^schema_\d+\.sql$/.test(name)).sort((a, b) => parseInt(a.slice(7)) - parseInt(b.slice(7)));
  // the tables that exist only while a statement reads them
  const unpacked = ['job_test', 'cell'].map((name) => {
    const [, columns] = /"CREATE TABLE x(\((?:[^"]|"\s*")*?\))"/.exec(readFileSync(`src/db/packed_${name}.c`, 'utf8'));
    return `CREATE TABLE ${name}${columns.replace(/"\s*"/g, '')};`;
  });
  execFileSync('sqlite3', ['-bail', file], { input: schema.map((name) => readFileSync(`src/db/${name}`, 'utf8')).join('\n') });
  const tables = execFileSync('sqlite3', [file, "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, rowid"], { encoding: 'utf8' });
  execFileSync('sqlite3', ['-bail', file], { input: unpacked.join('\n') });
  // one statement per line, because an error names its line
  const input = statements.map(({ sql }) => `EXPLAIN ${sql};`).join('\n');
  const { stderr } = spawnSync('sqlite3', [file], { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  const errors = new Map();
  for (const [, line, why] of stderr.matchAll(/^(?:Parse error|Error|Runtime error|Error:).*near line (\d+): (.*)$/gm)) errors.set(Number(line) - 1, why);
  return { errors, tables };
}

// Translates SQLite's types and keywords into PostgreSQL's. A GUID is stored as its text.
function translated(tables) {
  return tables.replace(/\bINTEGER PRIMARY KEY( AUTOINCREMENT)?/g, 'BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY')
    .replace(/\bINTEGER\b/g, 'BIGINT').replace(/\bBLOB\b/g, 'BYTEA').replace(/\bREAL\b/g, 'DOUBLE PRECISION')
    .replace(/\)\s*WITHOUT ROWID/g, ')').replace(/\bguid (NOT NULL|PRIMARY KEY)/g, 'guid TEXT $1');
}

const SCHEMA_FILE = 'src/db/postgres_schema.sql';

function schemaText(tables) {
  const version = Math.max(...readdirSync('src/db').map((name) => Number(/^schema_(\d+)\.sql$/.exec(name)?.[1] ?? 0)));
  return `-- Made of schema_1.sql to schema_${version}.sql by node tests/lint/sql.mjs --schema.\n\n${translated(tables).trim()}\n`;
}

// The statements as the program sends them: by its own C code.
function rewritten(statements, folder) {
  const program = path.join(folder, 'postgres-text'), main = path.join(folder, 'main.c');
  writeFileSync(main, `#include "db/postgres_text.h"
int main(void)
{
\tchar *line = NULL;
\tsize_t room = 0;
\twhile (getline(&line, &room, stdin) > 0)
\t\tfputs(postgres_text(line), stdout);
\treturn 0;
}
`);
  execFileSync('gcc', ['-std=gnu11', '-D_GNU_SOURCE', '-include', 'src/base/base.h', '-Isrc', '-o', program, main, 'src/db/postgres_text.c', 'src/base/alloc.c']);
  return execFileSync(program, { input: statements.map(({ sql }) => `${sql}\n`).join(''), encoding: 'utf8', maxBuffer: 1 << 28 }).split('\n');
}

function postgresErrors(statements, tables, folder) {
  const server = startPostgres();
  try {
    const { mustRun, run } = server;
    const file = path.join(server.folder, 'statements.sql');
    const setup = `${schemaText(tables)}\n${readFileSync('src/db/postgres_functions.sql', 'utf8')}`;
    mustRun('psql', ['-q', '-h', server.folder, '-U', 'outpost', '-v', 'ON_ERROR_STOP=1', '-d', 'postgres'], { input: setup });
    const texts = rewritten(statements, folder);
    writeFileSync(file, statements.map(({ types }, i) => {
      const list = types.length ? ` (${types.map((type) => PG_TYPES[type]).join(', ')})` : '';
      return `PREPARE s${i}${list} AS ${texts[i]};`;
    }).join('\n'));
    chmodSync(file, 0o644);
    const { stderr } = run('psql', ['-q', '-h', server.folder, '-U', 'outpost', '-d', 'postgres', '-f', file]);
    const errors = new Map();
    for (const [, line, why] of stderr.matchAll(/^psql:[^\n]*?:(\d+): ERROR: {1,2}(.*)$/gm)) errors.set(Number(line) - 1, why);
    return errors;
  } finally {
    server.stop();
  }
}

const statements = await allStatements();
if (process.argv.includes('--list')) {
  for (const { place, sql, types } of statements) console.log(`${place}: ${sql} [${types.join(', ')}]`);
} else {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'outpost-sql-'));
  try {
    const sqlite = sqliteErrors(statements, folder);
    if (process.argv.includes('--schema')) writeFileSync(SCHEMA_FILE, schemaText(sqlite.tables));
    const engines = { 'db/db.h': misplaced(statements), SQLite: sqlite.errors, PostgreSQL: postgresErrors(statements, sqlite.tables, folder) };
    let nErrors = 0;
    for (const [engine, errors] of Object.entries(engines)) {
      for (const [i, why] of errors) {
        nErrors++;
        console.error(`${statements[i].place}: ${engine}: ${why}\n    ${statements[i].sql}`);
      }
    }
    if (readFileSync(SCHEMA_FILE, 'utf8') !== schemaText(sqlite.tables)) {
      nErrors++;
      console.error(`${SCHEMA_FILE} is stale: node tests/lint/sql.mjs --schema`);
    }
    if (nErrors || statements.length < 300) {
      console.error(`${nErrors} rejections, ${statements.length} statements found`);
      process.exitCode = 1;
    } else {
      console.log(`${statements.length} SQL statements: SQLite and PostgreSQL accept each`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
