// PostgreSQL on loopback for several daemons, optionally with a synchronous standby, which a test stops, kills and fails over.
import { execFile } from 'node:child_process';
import { appendFileSync, chownSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort, until } from './outpost.mjs';
import { removeFolder } from './folder.mjs';
import { ENVIRONMENT, owner, programs } from '../../postgres.mjs';

const HOST = '127.0.0.1';
const servers = new Set(); // that run

process.on('exit', () => {
  for (const { data } of servers) {
    try {
      process.kill(Number.parseInt(readFileSync(path.join(data, 'postmaster.pid'), 'utf8'), 10), 'SIGQUIT');
    } catch { /* it has ended */ }
  }
});

// Also a process that its parent has not collected.
function hasEnded(pid) {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

class Server {
  static async make(folder, name, settings, network) {
    const self = new Server();
    Object.assign(self, { network, folder, data: path.join(folder, name), log: path.join(folder, `${name}.log`), port: await freePort() });
    self.settings = { ...settings, listen_addresses: network ? "'*'" : HOST, port: self.port, unix_socket_directories: folder };
    return self;
  }

  // Asynchronous, because the fake GitHub answers meanwhile.
  run(program, ...args) {
    const [first, ...rest] = [...(this.network?.command(owner()) ?? []), path.join(programs(), program), ...args];
    return promisify(execFile)(first, rest, { ...(!this.network && owner()), cwd: this.folder, env: { ...process.env, ...ENVIRONMENT, LC_ALL: 'C' }, maxBuffer: 1 << 28 });
  }

  async start() {
    const settings = Object.entries(this.settings).map(([key, value]) => `-c ${key}=${value}`).join(' ');
    servers.add(this);
    await this.run('pg_ctl', '-D', this.data, '-w', '-l', this.log, '-o', settings, 'start');
  }

  async stop(mode) {
    await this.run('pg_ctl', '-D', this.data, '-w', '-m', mode, 'stop');
    servers.delete(this);
  }

  // Its processes stand still, as where the disk does not answer: the kernel still confirms bytes and connections. end() is the way out.
  async freeze() {
    const postmaster = Number.parseInt(readFileSync(path.join(this.data, 'postmaster.pid'), 'utf8'), 10);
    process.kill(postmaster, 'SIGSTOP'); // it starts no more
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ').map(Number);
    for (const pid of children) process.kill(pid, 'SIGSTOP');
    this.frozen = [postmaster, ...children];
  }

  // After freeze(). The lock of the killed server's socket names a process that the machine may not have collected yet.
  async end() {
    for (const pid of this.frozen) process.kill(pid, 'SIGKILL');
    await until(() => this.frozen.every(hasEnded), { what: 'the killed server has ended' });
    for (const end of ['', '.lock']) await fs.rm(path.join(path.dirname(this.data), `.s.PGSQL.${this.port}${end}`), { force: true });
    servers.delete(this);
  }

  async sql(text, database = 'postgres') {
    const { stdout } = await this.run('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-h', HOST, '-p', String(this.port), '-U', 'outpost', '-d', database, '-c', text);
    return stdout.trim();
  }
}

export class Database {
  #spare; // the standby

  // isDurable: rows survive a failure of the machine, too; network: the servers run there (network.mjs).
  static async start({ hasStandby = false, isDurable = false, network } = {}) {
    const self = new Database();
    const { uid, gid } = owner();
    self.isDurable = isDurable;
    self.folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-database-'));
    if (uid !== undefined) chownSync(self.folder, uid, gid);
    const settings = { max_connections: 200, ...(!isDurable && { fsync: 'off', full_page_writes: 'off' }) };
    const names = hasStandby ? ['one', 'two'] : ['one'];
    [self.primary, self.#spare] = await Promise.all(names.map((name) => Server.make(self.folder, name, settings, network)));
    self.servers = [self.primary, ...(hasStandby ? [self.#spare] : [])];
    await self.primary.run('initdb', '--no-sync', '--no-locale', '--encoding=UTF8', '--auth=trust', '--username=outpost', self.primary.data);
    if (network) appendFileSync(path.join(self.primary.data, 'pg_hba.conf'), 'host all all 10.0.0.0/8 trust\n');
    await self.primary.start();
    await self.primary.sql("CREATE DATABASE outpost TEMPLATE template0 LOCALE 'C'");
    if (hasStandby) await self.#attach();
    return self;
  }

  // Makes the spare server a copy of the primary that confirms each commit.
  async #attach() {
    await removeFolder(this.#spare.data);
    await this.#spare.run('pg_basebackup', '-R', '--checkpoint=fast', '-D', this.#spare.data, '-h', HOST, '-p', String(this.primary.port), '-U', 'outpost');
    await this.#spare.start();
    await this.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await this.primary.sql('SELECT pg_reload_conf()');
    await until(async () => await this.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") === '1', { what: 'the standby is synchronous' });
  }

  // places: {host, port} of ways to the servers, in the order of `servers`.
  url(places = this.servers) {
    const hosts = places.map(({ host = HOST, port }) => `${host}:${port}`).join(',');
    const options = [...(places.length > 1 ? ['target_session_attrs=read-write'] : []), ...(this.isDurable ? [] : ['options=-c%20outpost.may_lose_rows%3Don'])];
    return `postgresql://outpost@${hosts}/outpost${options.length ? `?${options.join('&')}` : ''}`;
  }

  get hasStandby() { return this.servers.length > 1; }

  // mode: fast, or immediate: the processes end at once, and the server recovers from its log at the next start.
  stop(mode = 'fast') { return this.primary.stop(mode); }

  start() { return this.primary.start(); }

  // The primary dies and the standby takes its place. pause(): between the two. A new standby is attached afterwards.
  async failOver(pause = async () => {}) {
    await this.primary.stop('immediate');
    await pause();
    await this.#promote();
    return this.#attach();
  }

  // The same, but the primary stands still until `whenPromoted` is over.
  async failOverFromFrozen(whenPromoted) {
    const old = this.primary;
    await old.freeze();
    await this.#promote();
    await whenPromoted().finally(() => old.end());
    return this.#attach();
  }

  async #promote() {
    [this.primary, this.#spare] = [this.#spare, this.primary];
    await this.primary.run('pg_ctl', '-D', this.primary.data, '-w', 'promote');
    // The copy has the setting of the old primary, so that commits would wait for a standby.
    await this.primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    await this.primary.sql('SELECT pg_reload_conf()');
  }

  // Returns an object for each row.
  async query(text) {
    return JSON.parse(await this.primary.sql(`SELECT COALESCE(json_agg(r), '[]') FROM (${text}) r`, 'outpost'));
  }

  async close() {
    await Promise.all(this.servers.map((server) => server.stop('immediate').catch(() => {})));
    if (process.env.KEEP) console.error(`kept: ${this.folder}`);
    else await removeFolder(this.folder);
  }
}
