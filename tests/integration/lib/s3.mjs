// A real S3 server (OpenStack Swift, see s3-server.py), and in front of it a proxy that fails on demand.
//
//   const s3 = await S3.start();
//   config: { logs: 's3://logs/outpost', s3: s3.config(folder) }      // writes the keys into the folder
//   s3.requests                                                       // [{method, url, status, range}]
//   s3.fault = (request) => 503;                                      // or 'silent', 'cut', undefined
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeFolder } from './folder.mjs';

const SCRIPT = fileURLToPath(new URL('s3-server.py', import.meta.url));

// The reason to skip, or false.
export const noS3 = !existsSync('/usr/lib/python3/dist-packages/swift') && 'Swift is not installed (Debian: python3-swift)';

export class S3 {
  requests = [];
  fault = () => undefined;
  accessKey = 'outpost:logs';
  secretKey = randomBytes(20).toString('hex');
  #server;
  #child;
  #port;

  static async start() {
    const self = new S3();
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-s3-'));
    self.#child = spawn('/usr/bin/python3', [SCRIPT, self.dir], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, S3_SECRET: self.secretKey } });
    const ended = once(self.#child, 'exit').then(([code]) => { throw new Error(`the S3 server has ended with ${code}`); });
    ended.catch(() => {});
    const [line] = await Promise.race([once(self.#child.stdout.setEncoding('utf8'), 'data'), ended]);
    self.#port = Number(line);
    self.#server = http.createServer((request, response) => self.#forward(request, response));
    self.#server.listen(0, '127.0.0.1');
    await once(self.#server, 'listening');
    self.endpoint = `http://127.0.0.1:${self.#server.address().port}`;
    return self;
  }

  // Writes the keys, and returns the value of `s3` in outpost.yml.
  async config(folder, { accessKey = this.accessKey, secretKey = this.secretKey } = {}) {
    await fs.writeFile(path.join(folder, 's3.access'), `${accessKey}\n`, { mode: 0o600 });
    await fs.writeFile(path.join(folder, 's3.secret'), `${secretKey}\n`, { mode: 0o600 });
    return { endpoint: this.endpoint, region: 'eu-test-1', access_key_file: 's3.access', secret_key_file: 's3.secret' };
  }

  #forward(request, response) {
    const entry = { method: request.method, url: request.url, range: request.headers.range };
    this.requests.push(entry);
    const fault = this.fault(entry);
    if (fault === 'silent') return;
    if (typeof fault === 'number') {
      entry.status = fault;
      request.resume();
      response.writeHead(fault, { 'content-type': 'application/xml' }).end(`<Error><Code>Fault${fault}</Code></Error>`);
      return;
    }
    // The host that was signed stays.
    const inner = http.request({ host: '127.0.0.1', port: this.#port, method: request.method, path: request.url, headers: request.headers }, (answer) => {
      entry.status = answer.statusCode;
      response.writeHead(answer.statusCode, answer.headers);
      if (fault === 'cut') answer.once('data', (part) => response.write(part.subarray(0, part.length / 2), () => response.destroy()));
      else answer.pipe(response);
    });
    inner.on('error', () => response.destroy());
    if (fault === 'cut' && request.method === 'PUT') request.once('data', () => { inner.destroy(); request.destroy(); });
    request.pipe(inner);
  }

  async close() {
    this.#server?.closeAllConnections();
    this.#server?.close();
    this.#child?.kill('SIGKILL');
    await removeFolder(this.dir);
  }
}
