// The load: a real payload of GitHub's, wrk to send it, nginx to measure against, and what the machine is.
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

// The largest pull_request payload among Octokit's examples, made to be pytorch/pytorch's.
export function largestPullRequest() {
  const all = examples({ events: ['pull_request'] }).filter(({ action, payload }) => action === 'opened' || (action === 'synchronize' && payload.pull_request.state === 'open'));
  const payloads = all.map(({ payload }) => ({ ...payload, installation: { id: 7001, node_id: 'MDIzOkluc3RhbGxhdGlvbg==' } }));
  return payloads.toSorted((a, b) => JSON.stringify(b).length - JSON.stringify(a).length)[0];
}

let seed = Date.now() % 1_000_000;

// Returns {rate, p50, p99, max (ms), requests, refused, broken}. What wrk itself needs comes off nobody's time: it is C.
async function wrk(script, origin, args, { seconds, connections, threads }) {
  const child = spawn('wrk', [`-t${threads}`, `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', path.join(here, script), origin,
    '--', ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => { text += part; });
  const [code] = await once(child, 'close');
  const line = text.split('\n').find((one) => one.startsWith('{'));
  if (code !== 0 || !line) throw new Error(`wrk failed (${code}):\n${text}`);
  const said = JSON.parse(line);
  return {
    rate: said.requests / (said.duration_us / 1e6), p50: said.p50_us / 1000, p99: said.p99_us / 1000, max: said.max_us / 1000,
    requests: said.requests, refused: said.refused, broken: said.broken,
  };
}

export class Load {
  // payloads: which are sent, at random.
  static async prepare(dir, secret, payloads = [largestPullRequest()]) {
    const load = new Load();
    const bodies = payloads.map((payload) => JSON.stringify(payload));
    load.bytes = Math.max(...bodies.map((body) => Buffer.byteLength(body)));
    load.file = path.join(dir, 'bodies');
    const lines = await Promise.all(bodies.map(async (body, i) => {
      await fs.writeFile(path.join(dir, `body-${i}.json`), body);
      return `${await sign(secret, body)} ${path.join(dir, `body-${i}.json`)}\n`;
    }));
    await fs.writeFile(load.file, lines.join(''));
    return load;
  }

  // Sends for so many seconds. Returns what wrk() does.
  async run(url, { seconds, connections = 64, threads = 2 }) {
    const { origin, pathname } = new URL(url);
    return wrk('webhooks.lua', origin, [this.file, pathname, seed++], { seconds, connections, threads });
  }
}

// GETs of these paths in turn, each connection with so long a pause (ms) after each answer; pace 0 asks on at once.
// Returns what wrk() does.
export async function readPaths({ dir, origin, paths, seconds, connections = 1, pace = 0 }) {
  const file = path.join(dir, `paths-${seed}`);
  await fs.writeFile(file, paths.map((one) => `${one}\n`).join(''));
  return wrk('readers.lua', origin, [file, pace, seed++], { seconds, connections, threads: 1 });
}

// nginx as a yardstick: it reads each body into memory and hands it on to itself, with proxy_pass as it is unless
// told otherwise (a connection for each request), or, with keep, over kept connections. It verifies nothing and
// writes nothing.
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

// How long one small write takes until it is on this disk, in ms (median of 200).
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

// RssAnon in MiB.
export async function residentMemory(pid) {
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(await fs.readFile(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}
