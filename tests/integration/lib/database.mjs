// The database of a test's daemon: a file of SQLite in its folder, or a database of its own on the server of PostgreSQL that
// OUTPOST_TEST_DATABASE names (tests/postgres.mjs). It begins as a copy of the empty one that OUTPOST_EMPTY_DATABASE names; unset: the
// daemon makes its tables.
import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { psql, urlOf } from '../../postgres.mjs';

const EMPTY = process.env.OUTPOST_EMPTY_DATABASE; // on the engine of the environment
const isOnServer = Boolean(process.env.OUTPOST_TEST_DATABASE);

// The reason to skip a test of SQLite's file, or false.
export const needsFile = isOnServer && 'it is about the file of SQLite';

class File {
  settings = {}; // of outpost.yml

  static async create(stateDir, empty) {
    const self = new File();
    self.file = path.join(stateDir, 'outpost.db');
    if (empty) await fs.copyFile(empty, self.file);
    return self;
  }

  async copyTo(other) {
    await fs.copyFile(this.file, other.file);
  }

  async followClock() {} // it has none

  // Returns an object for each row.
  async query(sql) {
    const { stdout } = await promisify(execFile)('sqlite3', ['-json', '-readonly', '-cmd', '.timeout 10000', this.file, sql], { maxBuffer: 1 << 28 });
    return stdout.trim() ? JSON.parse(stdout) : [];
  }

  // Makes an empty database of a stopped daemon's. Returns the value of OUTPOST_EMPTY_DATABASE.
  async keepAs(file) {
    execFileSync('sqlite3', [this.file, 'DELETE FROM setting; PRAGMA wal_checkpoint(TRUNCATE);']);
    await fs.copyFile(this.file, file);
    return file;
  }

  async drop() {} // with the folder
}

class OnServer {
  isOnServer = true;

  static async create(stateDir, empty) {
    const self = new OnServer();
    self.name = `outpost_${randomUUID().replaceAll('-', '')}`;
    await self.#make(empty);
    self.settings = { store: urlOf(self.name) };
    return self;
  }

  #make(template) {
    return psql(urlOf('postgres'), `CREATE DATABASE ${this.name} ${template ? `TEMPLATE ${template}` : "TEMPLATE template0 LOCALE 'C'"}`);
  }

  async copyTo(other) {
    await other.drop();
    await other.#make(this.name);
  }

  async query(sql) {
    return JSON.parse(await psql(urlOf(this.name), `SELECT COALESCE(json_agg(r), '[]') FROM (${sql}) r`));
  }

  execute(sql) {
    return psql(urlOf(this.name), sql);
  }

  // Moves the clock of this database, which its daemons follow, before they start: it runs ahead by the nanoseconds in the file, eight
  // bytes with the highest first from offset on. Other databases of the server keep theirs: a function of the same name comes before
  // PostgreSQL's.
  followClock(file, offset) {
    return this.execute(`CREATE SCHEMA moved;
      CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
        SELECT pg_catalog.clock_timestamp() + ('x' || encode(pg_read_binary_file('${file}', ${offset}, 8), 'hex'))::bit(64)::bigint / 1000 * interval '1 microsecond' $$;
      ALTER DATABASE ${this.name} SET search_path = public, moved, pg_catalog`);
  }

  async keepAs(file) {
    const name = path.basename(file, '.db');
    await psql(urlOf(this.name), 'DELETE FROM setting');
    await psql(urlOf('postgres'), `DROP DATABASE IF EXISTS ${name}`);
    await psql(urlOf('postgres'), `ALTER DATABASE ${this.name} RENAME TO ${name}`);
    return name;
  }

  drop() {
    return psql(urlOf('postgres'), `DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`);
  }
}

const ENGINES = { sqlite: File, postgresql: OnServer };
const OF_ENVIRONMENT = isOnServer ? 'postgresql' : 'sqlite';

// engine: 'sqlite' or 'postgresql' (a server must be there), instead of that of the environment.
export function createDatabase(stateDir, engine = OF_ENVIRONMENT) {
  return ENGINES[engine].create(stateDir, engine === OF_ENVIRONMENT ? EMPTY : undefined);
}
