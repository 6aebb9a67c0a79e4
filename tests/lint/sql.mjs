// Prepares each SQL statement of src/ on SQLite and on PostgreSQL, and fails on a statement that either engine rejects:
// one SQL text serves both.
//
//   node tests/lint/sql.mjs [--list]      --list prints the statements instead
//
// The compiler's preprocessor prints each statement as the compiler sees it: with expanded macros and the bound values. SQLite gets
// the tables from src/db/schema_*.sql, PostgreSQL a translation of the same tables. PostgreSQL is Debian's, started here on a unix
// socket in a temporary folder.
import { execFileSync, spawnSync, execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
process.chdir(ROOT);

/* ---- the statements ---- */

const CALL = /\bdb_(?:exec|int|text|rows|exec_int|exec_text|exec_rows)_values\(/g;
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
  if (/^\s*value_text\(|VALUE_TEXT\b/.test(value)) return 'text';
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
    const sql = literal(parts[/_int_/.test(call[0]) ? 2 : 1] ?? '');
    const place = placeAt(code, call.index);
    if (sql === null || !place.startsWith('src/') || /^src\/db\/db_sqlite/.test(place)) continue; // a declaration, or the engine's own call
    const list = /\{(.*)\}/s.exec(parts.at(-1))?.[1] ?? '';
    const values = argumentsAt(`${list})`, 0).parts.slice(0, -1); // VALUE_END ends each list
    found.push({ place, sql: sql.replace(/\s+/g, ' ').trim(), types: values.map(typeOf), mayWrite: call[0].startsWith('db_exec') });
  }
  return found;
}

async function allStatements() {
  const files = readdirSync('src').flatMap((folder) => readdirSync(`src/${folder}`).filter((name) => name.endsWith('.c')).map((name) => `src/${folder}/${name}`))
    .filter((file) => /db_(exec|int|has|text|rows|exec_int|exec_text|exec_rows)\(|RECORD_/.test(readFileSync(file, 'utf8')));
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
  execFileSync('sqlite3', ['-bail', file], { input: [...unpacked, ...schema.map((name) => readFileSync(`src/db/${name}`, 'utf8'))].join('\n') });
  // one statement per line, because an error names its line
  const input = statements.map(({ sql }) => `EXPLAIN ${sql};`).join('\n');
  const { stderr } = spawnSync('sqlite3', [file], { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  const errors = new Map();
  for (const [, line, why] of stderr.matchAll(/^(?:Parse error|Error|Runtime error|Error:).*near line (\d+): (.*)$/gm)) errors.set(Number(line) - 1, why);
  const tables = execFileSync('sqlite3', [file, "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, rowid"], { encoding: 'utf8' });
  return { errors, tables };
}

// Translates SQLite's types and keywords into PostgreSQL's.
function translated(tables) {
  return tables.replace(/\bINTEGER PRIMARY KEY( AUTOINCREMENT)?/g, 'BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY')
    .replace(/\bINTEGER\b/g, 'BIGINT').replace(/\bBLOB\b/g, 'BYTEA').replace(/\bREAL\b/g, 'DOUBLE PRECISION')
    .replace(/\)\s*WITHOUT ROWID/g, ')').replace(/\bguid (NOT NULL|PRIMARY KEY)/g, 'guid BYTEA $1');
}

function postgresFolder() {
  const versions = readdirSync('/usr/lib/postgresql').filter((name) => /^\d+$/.test(name)).sort((a, b) => b - a);
  if (!versions.length) throw new Error('PostgreSQL is not installed: make deps');
  return `/usr/lib/postgresql/${versions[0]}/bin`;
}

function postgresErrors(statements, tables, folder) {
  const bin = postgresFolder(), data = path.join(folder, 'data');
  // PostgreSQL refuses to run as root.
  const [uid, gid] = process.getuid() === 0 ? ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))) : [undefined, undefined];
  const run = (program, args, options = {}) => spawnSync(path.join(bin, program), args, { uid, gid, cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  const mustRun = (...args) => {
    const { status, stderr, stdout, error } = run(...args);
    if (status !== 0) throw new Error(`${args[0]}: ${error ?? stderr + stdout}`);
  };
  if (uid !== undefined) chownSync(folder, uid, gid);
  mustRun('initdb', ['--no-sync', '--no-locale', '--encoding=UTF8', '--auth=trust', '--username=outpost', data]);
  mustRun('pg_ctl', ['-D', data, '-w', '-l', path.join(folder, 'log'), '-o', `-c listen_addresses='' -c unix_socket_directories='${folder}' -c fsync=off`, 'start']);
  try {
    const file = path.join(folder, 'statements.sql');
    const setup = `${translated(tables)}\n${readFileSync('src/db/postgres_functions.sql', 'utf8')}`;
    mustRun('psql', ['-q', '-h', folder, '-U', 'outpost', '-v', 'ON_ERROR_STOP=1', '-d', 'postgres'], { input: setup });
    writeFileSync(file, statements.map(({ sql, types }, i) => {
      const list = types.length ? ` (${types.map((type) => PG_TYPES[type]).join(', ')})` : '';
      return `PREPARE s${i}${list} AS ${sql.replace(/\?(\d+)/g, '$$$1').replace(/ INDEXED BY \w+/g, '').replace(/\bCROSS JOIN\b/g, 'JOIN')};`;
    }).join('\n'));
    chmodSync(file, 0o644);
    const { stderr } = run('psql', ['-q', '-h', folder, '-U', 'outpost', '-d', 'postgres', '-f', file]);
    const errors = new Map();
    for (const [, line, why] of stderr.matchAll(/^psql:[^\n]*?:(\d+): ERROR: {1,2}(.*)$/gm)) errors.set(Number(line) - 1, why);
    return errors;
  } finally {
    run('pg_ctl', ['-D', data, '-m', 'immediate', 'stop']);
  }
}

const statements = await allStatements();
if (process.argv.includes('--list')) {
  for (const { place, sql, types } of statements) console.log(`${place}: ${sql} [${types.join(', ')}]`);
} else {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'outpost-sql-'));
  try {
    const sqlite = sqliteErrors(statements, folder);
    const engines = { 'db/db.h': misplaced(statements), SQLite: sqlite.errors, PostgreSQL: postgresErrors(statements, sqlite.tables, folder) };
    let nErrors = 0;
    for (const [engine, errors] of Object.entries(engines)) {
      for (const [i, why] of errors) {
        nErrors++;
        console.error(`${statements[i].place}: ${engine}: ${why}\n    ${statements[i].sql}`);
      }
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
