// The load: a real GitHub payload, wrk to send it, nginx for comparison, and a description of the machine.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { sign } from '@octokit/webhooks-methods';
import { examples } from '../github/payloads.mjs';
import { freePort, until } from '../integration/lib/outpost.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

// The largest pull_request payload among Octokit's examples, changed to pytorch/pytorch.
export function largestPullRequest() {
  const all = examples({ events: ['pull_request'] }).filter(({ action, payload }) => action === 'opened' || (action === 'synchronize' && payload.pull_request.state === 'open'));
  const payloads = all.map(({ payload }) => ({ ...payload, installation: { id: 7001, node_id: 'MDIzOkluc3RhbGxhdGlvbg==' } }));
  return payloads.toSorted((a, b) => JSON.stringify(b).length - JSON.stringify(a).length)[0];
}

let seed = Date.now() % 1_000_000;

// Returns {rate, p50, p99, max (ms), requests, refused, broken}. wrk itself needs little time.
async function wrk(script, origin, args, { seconds, connections, threads }) {
  const child = spawn('wrk', [`-t${threads}`, `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', path.join(here, script), origin,
    '--', ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => { text += part; });
  const [code] = await once(child, 'close');
  const line = text.split('\n').find((one) => one.startsWith('{'));
  if (code !== 0 || !line) throw new Error(`wrk failed (${code}):\n${text}`);
  const result = JSON.parse(line);
  return {
    rate: result.requests / (result.duration_us / 1e6), p50: result.p50_us / 1000, p99: result.p99_us / 1000, max: result.max_us / 1000,
    requests: result.requests, refused: result.refused, broken: result.broken,
  };
}

export class Load {
  // payloads: the payloads to send, chosen at random.
  static async prepare(dir, secret, payloads = [largestPullRequest()]) {
    const load = new Load();
    const bodies = payloads.map((payload) => JSON.stringify(payload));
    load.bytes = Math.max(...bodies.map((body) => Buffer.byteLength(body)));
    load.file = path.join(dir, 'bodies');
    load.body = path.join(dir, 'body-0.json');
    const lines = await Promise.all(bodies.map(async (body, i) => {
      await fs.writeFile(path.join(dir, `body-${i}.json`), body);
      return `${await sign(secret, body)} ${path.join(dir, `body-${i}.json`)}\n`;
    }));
    await fs.writeFile(load.file, lines.join(''));
    return load;
  }

  // Sends for so many seconds; guids: 'time' as GitHub makes them, or 'random'. Returns the result of wrk().
  async run(url, { seconds, connections = 64, threads = 2, guids = 'time' }) {
    const { origin, pathname } = new URL(url);
    return wrk('webhooks.lua', origin, [this.file, pathname, seed++, guids], { seconds, connections, threads });
  }
}

// GETs of these paths in turn, with a pause of `pace` ms after each answer of a connection. Returns the result of wrk().
export async function readPaths({ dir, origin, paths, seconds, connections = 1, pace = 0 }) {
  const file = path.join(dir, `paths-${seed}`);
  await fs.writeFile(file, paths.map((one) => `${one}\n`).join(''));
  return wrk('readers.lua', origin, [file, pace, seed++], { seconds, connections, threads: 1 });
}

// nginx for comparison: it reads each body into memory and proxies it to itself, with the default proxy_pass (a connection for each
// request) or, with keep, over persistent connections. It verifies and stores nothing.
export async function startNginx(dir, { keep = false } = {}) {
  const [front, back] = [await freePort(), await freePort()];
  const home = path.join(dir, 'nginx');
  await fs.mkdir(home, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`).join(' ');
  await fs.writeFile(path.join(home, 'nginx.conf'), `
daemon off; worker_processes auto; pid ${home}/pid; error_log stderr crit;
events { worker_connections 1024; }
http {
  ${temporary}
  access_log off; keepalive_requests 100000000; client_max_body_size 25m; client_body_buffer_size 64k;
  upstream back { server 127.0.0.1:${back}; ${keep ? 'keepalive 128; keepalive_requests 100000000;' : ''} }
  server { listen 127.0.0.1:${front}; location / { proxy_pass http://back; ${keep ? 'proxy_http_version 1.1; proxy_set_header Connection "";' : ''} } }
  server { listen 127.0.0.1:${back}; location / { default_type application/json; return 200 '{"status":"accepted"}'; } }
}
`);
  const child = spawn('nginx', ['-p', home, '-e', 'stderr', '-c', path.join(home, 'nginx.conf')], { stdio: ['ignore', 'inherit', 'inherit'] });
  const url = `http://127.0.0.1:${front}/github/webhook`;
  await until(async () => (await fetch(url, { method: 'POST', body: 'x' })).ok, { timeout: 5000, what: 'nginx answers' });
  const ended = once(child, 'exit');
  return { url, stop: async () => { child.kill('SIGTERM'); await ended; } };
}

// The time of one small durable write to this disk, in ms (median of 200).
export function fsyncCost(dir) {
  const file = path.join(dir, 'fsync');
  const fd = openSync(file, 'w');
  const times = [];
  for (let i = 0; i < 200; i++) {
    writeSync(fd, Buffer.alloc(4096, i));
    const start = performance.now();
    fsyncSync(fd);
    times.push(performance.now() - start);
  }
  closeSync(fd);
  return times.toSorted((a, b) => a - b)[100];
}

export function machine(dir) {
  const version = (program, flag) => {
    try {
      return execFileSync('sh', ['-c', `${program} ${flag} 2>&1`]).toString().match(/\d+\.\d+(\.\d+)?/)?.[0];
    } catch {
      return undefined;
    }
  };
  return { cpu: os.cpus()[0].model.trim(), cores: os.cpus().length, kernel: os.release(), fsync_ms: fsyncCost(dir), nginx: version('nginx', '-v'), wrk: version('wrk', '-v') };
}

// What a process has used so far: CPU in µs, and the bytes that it wrote to files.
export async function usedBy(pid) {
  const times = (await fs.readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return { cpu_us: (Number(times[11]) + Number(times[12])) * 10_000, written: Number(/^write_bytes: (\d+)/m.exec(await fs.readFile(`/proc/${pid}/io`, 'utf8'))[1]) };
}

// The CPU in µs of HMAC and compression of this body, from tests/bench/floor.c.
export const floorCost = (build, body) => Number(execFileSync(path.join(build, 'bench/floor'), [body]));

// RssAnon in MiB.
export async function residentMemory(pid) {
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(await fs.readFile(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}
