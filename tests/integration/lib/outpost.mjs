// Starts the built programs as an operator does: with their own folder and configuration and real sockets.
//
//   const outpost = await Outpost.start({ rig, issuer, accelerators: [...] });
//   await outpost.waitForLog({ ev: 'job_finished' });
//   await outpost.stop();            // SIGTERM, asserts exit 0
//
// The programs come from OUTPOSTD and OUTPOSTCTL, or from build/release/ (BUILD=asan: another variant).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { library } from '../../github/libraries.mjs';
import { WAIT_MS, sendPatiently, waitAtLeast } from '../../github/patience.mjs';
import { createDatabase } from './database.mjs';
import { removeFolder } from './folder.mjs';

const { stringify } = library('yaml');
const FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 160;
const MORE_STARTS = 5;
// Texts of libpq, of PostgreSQL and of src/db/ about a server that is away or late.
const NO_ANSWER = /PostgreSQL: .*(?:timeout expired|sent nothing|could not connect|Connection refused|Connection reset|server closed|not yet accepting|starting up|shutting down|the connection was lost|not confirmed a commit)/;
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const build = path.join(root, 'build', process.env.BUILD ?? 'release');
// The factor by which everything may be slower than usual, for a daemon under valgrind.
export const OUTPOSTD = process.env.OUTPOSTD ?? path.join(build, 'outpostd');
export const OUTPOSTCTL = process.env.OUTPOSTCTL ?? path.join(build, 'outpostctl');

// The reason to skip if the daemon is not built, or false.
export const notBuilt = existsSync(OUTPOSTD) ? false : `${path.relative(root, OUTPOSTD)} is not built`;

const children = new Set();
process.on('exit', () => { for (const child of children) child.kill('SIGKILL'); });
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

// Polls until fn returns a truthy value. Only for conditions over HTTP: use waitForLog for a log line. Without an interval the pauses
// grow, because many tests run at once and each look takes some milliseconds of the processor.
export async function until(fn, { timeout, interval, what = fn.toString() } = {}) {
  const limit = waitAtLeast(timeout);
  const end = Date.now() + limit;
  let pause = interval ?? FIRST_PAUSE_MS;
  let last;
  do {
    try {
      const value = await fn();
      if (value) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await sleep(pause);
    if (interval === undefined) pause = Math.min(1.4 * pause, LONGEST_PAUSE_MS);
  } while (Date.now() < end);
  throw new Error(`not within ${limit} ms: ${what}${last ? `; last: ${last.message}` : ''}`);
}

// True: no server of this machine has the address. Closes the server; with isKept it stays until this process ends.
async function canListen(address, isKept) {
  const server = net.createServer().listen(...address);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (error.code === 'EADDRINUSE') return false;
    throw error;
  }
  if (isKept) server.unref();
  else await new Promise((resolve) => server.close(resolve));
  return true;
}

// A port for a daemon that starts later, perhaps more than once. It is below the kernel's range for outgoing connections (32768 and
// above), so that no connection gets it while the daemon is down. Until this process ends it holds an abstract socket with the port's
// number, so that no other test gets the port. It is above 10080, which fetch() refuses.
export async function freePort() {
  for (;;) {
    const port = 11_000 + Math.floor(Math.random() * 21_000);
    if (await canListen([`\0outpost-test-port-${port}`], true) && await canListen([port, '127.0.0.1'], false)) return port;
  }
}

// "ev=listening address=127.0.0.1:1 msg="two words"" or a JSON line → {ev, address, msg}
export function parseLog(line) {
  if (line.startsWith('{')) {
    try {
      return JSON.parse(line);
    } catch {
      return {};
    }
  }
  const fields = {};
  for (const [, key, quoted, bare] of line.matchAll(/([A-Za-z_][\w.]*)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g))
    fields[key] = quoted === undefined ? bare : quoted.replace(/\\(.)/g, '$1');
  return fields;
}

// Merges plain objects and replaces other values; null removes a key.
function merge(base, over) {
  if (over === null || typeof over !== 'object' || Array.isArray(over)) return over;
  const out = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === null) delete out[key];
    else out[key] = typeof base?.[key] === 'object' && !Array.isArray(base[key]) ? merge(base[key], value) : value;
  }
  return out;
}

export class Outpost extends EventEmitter {
  log = []; // {line, fields}
  #child;
  #exit;
  #close;
  #begun = 0; // the length of `log` at the last start
  #ended = false;

  // options:
  //   rig            the fake GitHub (tests/github/rig.mjs); its webhooks go to this daemon
  //   issuer, issuers  OIDC issuers ({issuer, jwksUrl, repositories?})
  //   accelerators   [{name, title, level, …}] as in accelerators.d; secrets: {accelerator: {name: value}}
  //   allowlist      text of CRCR's file;  config: merged over the generated outpost.yml
  //   program (default: OUTPOSTD), env, args, listen (host:port), url, wait: false (do not wait until it is ready)
  //   tls            {ca, cert, key} as PEM, to serve HTTPS
  //   engine         sqlite or postgresql, instead of that of OUTPOST_TEST_DATABASE
  //   clock          tests/history/clock.mjs: the time of the daemon and of its database
  //   logFile        the log goes there and is not read, for load tests
  static async start(options = {}) {
    const outpost = await Outpost.prepare(options);
    await outpost.spawn();
    return outpost;
  }

  // Writes the configuration only.
  static async prepare(options = {}) {
    const self = new Outpost();
    self.setMaxListeners(0);
    self.options = options;
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-'));
    self.stateDir = path.join(self.dir, 'state');
    self.configFile = path.join(self.dir, 'outpost.yml');
    self.port = options.port ?? await freePort();
    self.listen = options.listen ?? `127.0.0.1:${self.port}`;
    self.url = options.url ?? `${options.tls ? 'https' : 'http'}://${self.listen}`;
    await fs.mkdir(self.stateDir, { mode: 0o700 });
    self.database = await createDatabase(self.stateDir, options.engine);
    await options.clock?.move(self.database);
    await self.configure(options);
    return self;
  }

  // Writes the configuration again, for SIGHUP.
  async configure(changes = {}) {
    this.options = { ...this.options, ...changes };
    const { rig, accelerators = [], secrets = {}, allowlist, config = {} } = this.options;
    const issuers = this.options.issuers ?? (this.options.issuer ? [this.options.issuer] : []);
    await fs.writeFile(path.join(this.dir, 'app.pem'), rig?.app.privateKey ?? this.options.privateKey ?? '', { mode: 0o600 });
    await fs.writeFile(path.join(this.dir, 'webhook.secret'), `${rig?.secret ?? this.options.secret ?? 'secret'}\n`, { mode: 0o600 });
    await removeFolder(path.join(this.dir, 'accelerators.d'));
    await fs.mkdir(path.join(this.dir, 'accelerators.d'));
    for (const accelerator of accelerators)
      await fs.writeFile(path.join(this.dir, 'accelerators.d', `${accelerator.name}.yml`), stringify(accelerator));
    for (const [accelerator, values] of Object.entries(secrets)) {
      await fs.mkdir(path.join(this.dir, 'secrets', accelerator), { recursive: true });
      for (const [name, value] of Object.entries(values))
        await fs.writeFile(path.join(this.dir, 'secrets', accelerator, name), `${value}\n`, { mode: 0o600 });
    }
    if (allowlist !== undefined) await fs.writeFile(path.join(this.dir, 'allowlist.yml'), allowlist);
    const { tls } = this.options;
    if (tls) {
      await fs.writeFile(path.join(this.dir, 'tls.crt'), tls.cert);
      await fs.writeFile(path.join(this.dir, 'tls.key'), tls.key, { mode: 0o600 });
    }
    const value = merge({
      ...(tls && { tls: { certificate: 'tls.crt', private_key: 'tls.key' } }),
      listen: this.listen,
      public_url: this.url,
      state_dir: this.stateDir,
      ...this.database.settings,
      log: { level: 'debug', format: 'text' },
      upstream: { repository: 'pytorch/pytorch', branches: ['main'] },
      github: {
        api_url: rig?.url ?? 'http://127.0.0.1:9', app_id: rig?.app.id ?? 12345,
        private_key_file: 'app.pem', webhook_secret_file: 'webhook.secret', writes_per_minute: 10_000, // 8 ms between two; with 80, a second
        ...(issuers.length > 0 && { oidc: {
          audience: 'pytorch-cross-repo-ci-relay',
          issuers: issuers.map(({ issuer, jwksUrl, repositories }) => ({ issuer, jwks_url: jwksUrl, ...(repositories && { repositories }) })),
        } }),
      },
      outgoing: { allow_networks: ['127.0.0.0/8'] },
      secrets_dir: 'secrets',
      accelerators: { directory: 'accelerators.d', ...(allowlist !== undefined && { allowlist: 'allowlist.yml' }) },
      comment: { enabled: true, min_interval: '50ms' },
      reconcile: { interval: '1h' },
    }, config);
    await fs.writeFile(this.configFile, stringify(value));
    await fs.mkdir(path.join(this.dir, 'secrets'), { recursive: true });
  }

  // Starts the daemon and waits until it is ready. It starts again if the database did not answer it in time, as under systemd, because a
  // busy machine alone may cause that.
  async spawn() {
    for (let left = MORE_STARTS; ; left--) {
      try {
        return await this.#spawnOnce();
      } catch (error) {
        const isOnServer = this.options.config?.store ?? this.database.isOnServer;
        if (left === 0 || !isOnServer || !await this.hasMissedDatabase()) throw error;
      }
    }
  }

  // Waits for the end of the daemon. Returns true if it ended by itself before it was ready, because the database did not answer it.
  async hasMissedDatabase() {
    const { code } = await this.#exit;
    if (code !== 1) return false;
    await this.#close;
    const lines = this.log.slice(this.#begun).map(({ fields }) => fields);
    return !lines.some(({ ev }) => ev === 'listening') && lines.some(({ ev, why }) => ev === 'store_not_reached' || (ev === 'start_failed' && NO_ANSWER.test(why)));
  }

  async #spawnOnce() {
    const started = this.#begun = this.log.length;
    const logFile = this.options.logFile && await fs.open(this.options.logFile, 'a');
    this.#child = spawn(this.options.program ?? OUTPOSTD, ['-c', this.configFile, ...(this.options.args ?? [])], {
      cwd: this.dir, env: { ...process.env, ...this.options.clock?.environment, ...this.options.env }, stdio: ['ignore', 'inherit', logFile?.fd ?? 'pipe'],
    });
    await logFile?.close();
    this.#ended = false;
    children.add(this.#child);
    const child = this.#child;
    this.#exit = once(child, 'exit').then(([code, signal]) => {
      children.delete(child);
      this.emit('exit', { code, signal });
      return { code, signal };
    });
    this.#exit.catch(() => {});
    this.#close = once(child, 'close').catch(() => {}); // after the last line of the log
    let rest = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const entry = { line, fields: parseLog(line) };
        this.log.push(entry);
        this.emit('log', entry);
      }
    });
    if (this.options.rig) this.options.rig.setTarget(`${this.url}/github/webhook`);
    if (this.options.wait === false) return;
    const listening = logFile ? Promise.resolve() : this.waitForLog({ ev: 'listening' }, { after: started });
    listening.catch(() => {});
    const failed = this.#exit.then(({ code, signal }) => {
      throw new Error(`outpostd ended (${signal ?? code}) before it was ready:\n${this.tail()}`);
    });
    failed.catch(() => {});
    try {
      await Promise.race([listening, failed]);
      await Promise.race([until(async () => (await this.get('/readyz')).status === 200, { what: '/readyz is 200' }), failed]);
    } catch (error) {
      this.#ended = true;
      this.#child.kill('SIGKILL');
      throw error;
    }
  }

  get pid() { return this.#child.pid; }
  get exited() { return this.#exit; }

  tail(lines = 40) {
    if (this.options.logFile) return readFileSync(this.options.logFile, 'utf8').split('\n').slice(-lines).join('\n');
    return this.log.slice(-lines).map(({ line }) => line).join('\n');
  }

  // Resolves with the first log entry, past (from `after` on) or future, that has these fields or fits the function.
  waitForLog(expected, { timeout, after = 0 } = {}) {
    const limit = waitAtLeast(timeout);
    const fits = typeof expected === 'function' ? expected
      : ({ fields }) => Object.entries(expected).every(([key, value]) => (value instanceof RegExp ? value.test(fields[key] ?? '') : String(fields[key]) === String(value)));
    const found = this.log.slice(after).find(fits);
    if (found) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.off('log', look);
        reject(new Error(`no log line ${typeof expected === 'function' ? expected : JSON.stringify(expected)} within ${limit} ms; the last ones:\n${this.tail()}`));
      }, limit).unref(); // so that the timer keeps no test file running
      const look = (entry) => {
        if (!fits(entry)) return;
        clearTimeout(timer);
        this.off('log', look);
        resolve(entry);
      };
      this.on('log', look);
    });
  }

  // Sends SIGTERM and asserts exit status 0.
  async stop() {
    if (!this.#child || this.#ended) return;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null)
      assert.fail(`outpostd ended by itself (${this.#child.signalCode ?? this.#child.exitCode}):\n${this.tail()}`);
    this.#child.kill('SIGTERM');
    const late = sleep(WAIT_MS, 'late', { ref: false });
    const ended = await Promise.race([this.#exit, late]);
    if (ended === 'late') {
      await this.kill();
      assert.fail(`outpostd did not end within ${WAIT_MS} ms of SIGTERM:\n${this.tail()}`);
    }
    this.#ended = true;
    assert.deepEqual(ended, { code: 0, signal: null }, `outpostd ended badly:\n${this.tail()}`);
  }

  async kill() {
    this.#ended = true;
    if (!this.#child) return; // never started
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  // On the same folder, port and database.
  async restart({ hard = false } = {}) {
    await (hard ? this.kill() : this.stop());
    await this.spawn();
  }

  async reload() {
    const after = this.log.length;
    this.#child.kill('SIGHUP');
    return this.waitForLog({ ev: /reload/ }, { after });
  }

  // Ends the daemon in any state and removes its folder and database (kept with KEEP=1).
  async close() {
    try {
      await this.stop();
    } finally {
      if (process.env.KEEP) console.error(`kept: ${this.dir}`);
      else await Promise.all([removeFolder(this.dir), this.database.drop()]);
    }
  }

  ctl(...args) {
    return runProgram(OUTPOSTCTL, ['-c', this.configFile, ...args], { cwd: this.dir, env: environmentOf(args) });
  }

  // As in a shell of a terminal. stdout contains both streams.
  ctlOnTerminal(...args) {
    const command = [OUTPOSTCTL, '-c', this.configFile, ...args].map((word) => `'${word}'`).join(' ');
    return runProgram('script', ['-qec', command, '/dev/null'], { cwd: this.dir, env: environmentOf(args) });
  }

  check() {
    return runProgram(OUTPOSTD, ['-c', this.configFile, '--check'], { cwd: this.dir });
  }

  // {status, headers, text, json}; json is undefined if the body is not JSON.
  request(method, target, options = {}) {
    return sendPatiently(() => this.#requestOnce(method, target, options));
  }

  #requestOnce(method, target, { headers = {}, body, agent, timeout, localAddress }) {
    const limit = waitAtLeast(timeout);
    return new Promise((resolve, reject) => {
      const { hostname, port, protocol } = new URL(this.url);
      const host = hostname.replace(/^\[|\]$/g, '');
      const tls = protocol === 'https:';
      const data = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const request = (tls ? https : http).request({ host, port, method, path: target, agent, timeout: limit, localAddress, ca: this.options.tls?.ca,
        headers: { ...(data !== undefined && { 'content-length': Buffer.byteLength(data) }), ...headers } }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(parts).toString('utf8');
          let json;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({ status: response.statusCode, headers: response.headers, text, json });
        });
      });
      request.on('timeout', () => request.destroy(new Error(`no answer to ${method} ${target} within ${limit} ms`)));
      request.on('error', reject);
      request.end(data);
    });
  }

  get(target, options) {
    return this.request('GET', target, options);
  }

  async api(target) {
    const answer = await this.get(`/api/v1/${target}`);
    assert.equal(answer.status, 200, `GET /api/v1/${target}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  // Waits until GET /api/v1/TARGET is 200 and fits.
  waitForApi(target, fits, options) {
    return until(async () => {
      const answer = await this.get(`/api/v1/${target}`);
      return answer.status === 200 && fits(answer.json) && answer.json;
    }, { what: `/api/v1/${target}: ${fits}`, ...options });
  }

  // Sends raw bytes. Resolves with {text, answers} when the server has closed the connection.
  async raw(bytes) {
    const unanswered = Object.assign(new Error('no answer'), { code: 'ECONNRESET' });
    let got;
    try {
      return await sendPatiently(async () => {
        got = await this.#rawOnce(bytes);
        if (got.text === '') throw unanswered;
        return got;
      });
    } catch (error) {
      if (error !== unanswered) throw error;
      return got;
    }
  }

  #rawOnce(bytes) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, this.listen.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''));
      let text = '';
      const timer = setTimeout(() => {
        socket.destroy();
        reject(new Error(`the connection is open after ${WAIT_MS} ms; so far: ${text}`));
      }, WAIT_MS);
      const finish = () => {
        clearTimeout(timer);
        socket.destroy();
        resolve({ text, answers: [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status)) });
      };
      socket.on('connect', () => socket.write(bytes));
      socket.on('data', (data) => { text += data.toString('latin1'); });
      socket.on('close', finish);
      socket.on('error', (error) => { if (text || error.code === 'ECONNRESET' || error.code === 'EPIPE') finish(); else { clearTimeout(timer); reject(error); } });
    });
  }
}

// The search for leaks takes half the time of a command of outpostctl, so it follows only the first run of each command in a file.
const searched = new Set();
function environmentOf(args) {
  const command = args.filter((word) => !word.startsWith('-')).slice(0, 2).join(' ');
  if (!searched.has(command)) {
    searched.add(command);
    return process.env;
  }
  return { ...process.env, ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'detect_leaks=0'].filter(Boolean).join(':') };
}

export function runProgram(program, args, { cwd, input, env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], timeout: WAIT_MS });
    children.add(child);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text) => { stdout += text; });
    child.stderr?.setEncoding('utf8').on('data', (text) => { stderr += text; });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal, stdout, stderr });
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}
