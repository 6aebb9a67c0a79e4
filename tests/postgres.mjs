// Debian's PostgreSQL on a unix socket in a temporary folder, for the time of one command or of one lint.
//
//   node tests/postgres.mjs COMMAND ARG...      runs it with OUTPOST_TEST_DATABASE, the URL of the database `postgres`
//
// The server loses rows when the machine fails (fsync = off), which `outpost.may_lose_rows` permits: src/db/db_postgres_schema.c
// refuses it otherwise.
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CONFIGURATION = { listen_addresses: "''", fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: '200', max_locks_per_transaction: '256' };

// Of pg_ctl: the seconds that it waits. On a busy machine its own 60 s are too few.
export const ENVIRONMENT = { PGCTLTIMEOUT: '600' };

export function programs() {
  const versions = readdirSync('/usr/lib/postgresql').filter((name) => /^\d+$/.test(name)).sort((a, b) => b - a);
  if (!versions.length) throw new Error('PostgreSQL is not installed: make deps');
  return `/usr/lib/postgresql/${versions[0]}/bin`;
}

// The URL of another database of the server that OUTPOST_TEST_DATABASE names.
export const urlOf = (database) => process.env.OUTPOST_TEST_DATABASE.replace('/postgres?', `/${database}?`);

// Returns the output of a statement.
export async function psql(url, sql) {
  const { stdout } = await promisify(execFile)(path.join(programs(), 'psql'), ['-XqAt', '-v', 'ON_ERROR_STOP=1', '-c', sql, url], { maxBuffer: 1 << 28 });
  return stdout;
}

// The user of the server's processes. PostgreSQL refuses to run as root.
export function owner() {
  if (process.getuid() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })));
  return { uid, gid };
}

// more: settings of postgresql.conf. Returns the server's folder, `url`, run(program, args, options) for its programs, and stop().
export function startPostgres(more = {}) {
  const bin = programs(), folder = mkdtempSync(path.join(os.tmpdir(), 'outpost-postgres-')), data = path.join(folder, 'data');
  const { uid, gid } = owner();
  const run = (program, args, options = {}) => spawnSync(path.join(bin, program), args, { uid, gid, cwd: folder, env: { ...process.env, ...ENVIRONMENT }, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  const mustRun = (...args) => {
    const { status, stderr, stdout, error } = run(...args);
    if (status !== 0) throw new Error(`${args[0]}: ${error ?? stderr + stdout}`);
    return stdout;
  };
  const stop = () => {
    run('pg_ctl', ['-D', data, '-m', 'immediate', 'stop']);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    if (uid !== undefined) chownSync(folder, uid, gid);
    mustRun('initdb', ['--no-sync', '--no-locale', '--encoding=UTF8', '--auth=trust', '--username=outpost', data]);
    // one role needs a password: tests/unit/test_db_postgres.c
    writeFileSync(path.join(data, 'pg_hba.conf'), 'local all secured scram-sha-256\nlocal all all trust\n');
    const settings = Object.entries({ ...CONFIGURATION, ...more, unix_socket_directories: `'${folder}'` }).map(([key, value]) => `-c ${key}=${value}`).join(' ');
    mustRun('pg_ctl', ['-D', data, '-w', '-l', path.join(folder, 'log'), '-o', settings, 'start']);
  } catch (error) {
    stop();
    throw error;
  }
  return { folder, run, mustRun, stop, url: `postgresql:///postgres?host=${folder}&user=outpost&options=-c%20outpost.may_lose_rows%3Don` };
}

// Makes sure that OUTPOST_TEST_DATABASE names a server: a temporary one, which ends with this process, unless it does already.
export function needPostgres() {
  if (process.env.OUTPOST_TEST_DATABASE) return;
  const server = startPostgres();
  process.on('exit', server.stop);
  process.env.OUTPOST_TEST_DATABASE = server.url;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = startPostgres();
  const child = spawn(process.argv[2], process.argv.slice(3), { stdio: 'inherit', env: { ...process.env, OUTPOST_TEST_DATABASE: server.url } });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => console.error(error.message));
  child.on('close', (code) => {
    server.stop();
    process.exitCode = code ?? 1;
  });
}
