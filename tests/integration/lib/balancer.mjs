// nginx in front of several daemons, with the configuration of docs/cluster.md. Only the addresses and the certificate are the test's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { until } from './outpost.mjs';

const PAGE = new URL('../../../docs/cluster.md', import.meta.url);

function configuration(port, ports) {
  const [, text] = /^```nginx\n([^]*?)^```$/m.exec(readFileSync(PAGE, 'utf8'));
  const servers = (list) => ports.map((one) => list.replace(/^(\tserver )\S+(.*\n)[^]*$/, (_, begin, end) => `${begin}127.0.0.1:${one}${end}`)).join('');
  return text
    .replace(/^(?:\tserver \d.*\n)+/gm, servers)
    .replace(/^\tlisten .*$/m, `\tlisten 127.0.0.1:${port};`).replace(/^\tssl_.*\n/gm, '');
}

// folder: for its files; port: its own; ports: of the daemons. Returns {stop()}.
export async function startBalancer({ folder, port, ports }) {
  const file = (name) => path.join(folder, name);
  await fs.mkdir(folder, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${file(name)};`).join(' ');
  await fs.writeFile(file('nginx.conf'), `daemon off; worker_processes 1; ${process.getuid() === 0 ? 'user root; ' : ''} pid ${file('pid')}; error_log ${file('error.log')} warn;
events { worker_connections 4096; }
http { ${temporary} access_log off; keepalive_requests 1000000;
${configuration(port, ports)}}
`);
  const child = spawn('nginx', ['-p', folder, '-e', file('error.log'), '-c', file('nginx.conf')], { stdio: 'ignore' });
  process.on('exit', () => child.kill('SIGTERM')); // SIGKILL would leave its workers
  const ended = once(child, 'exit');
  await Promise.race([
    until(() => fetch(`http://127.0.0.1:${port}/healthz`), { what: 'nginx answers' }),
    ended.then(async ([code]) => { throw new Error(`nginx ended with ${code}: ${await fs.readFile(file('error.log'), 'utf8')}`); }),
  ]);
  ended.catch(() => {});
  return { pid: child.pid, stop: async () => { child.kill('SIGTERM'); await ended; } };
}
