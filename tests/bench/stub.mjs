// Fast stubs of the GitHub API that a daemon needs to send dispatches. They are for load tests; the stateful rig is for correctness.
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';
import { fakeSha } from '../github/payloads.mjs';

const newApp = () => ({ id: 12345, privateKey: generateKeyPairSync('rsa', {
  modulusLength: 2048, privateKeyEncoding: { type: 'pkcs1', format: 'pem' }, publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey });

// tests/bench/wire.c: the API, and the sender of the webhooks in `file`, in a process that needs little time.
export class Wire {
  static async start(build, file, secret) {
    const wire = new Wire();
    Object.assign(wire, { secret, app: newApp(), child: spawn(path.join(build, 'bench/wire'), [file], { stdio: ['pipe', 'pipe', 'inherit'] }) });
    wire.lines = readline.createInterface({ input: wire.child.stdout })[Symbol.asyncIterator]();
    wire.url = `http://127.0.0.1:${(await wire.lines.next()).value}`;
    return wire;
  }

  setTarget() {}

  async ask(command) {
    this.child.stdin.write(`${command}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`wire failed: ${command}`);
    return JSON.parse(value);
  }

  stop() { this.child.stdin.end(); }
}

export class Stub {
  #server;
  dispatches = []; // performance.now() of each dispatch request's arrival
  bodies = []; // of the dispatch requests, if it keeps them
  requests = 0;

  // delay: ms before each answer; keepsBodies: of the dispatch requests.
  static async start({ delay = 0, keepsBodies = false } = {}) {
    const stub = new Stub();
    stub.delay = delay;
    stub.keepsBodies = keepsBodies;
    stub.secret = randomBytes(20).toString('hex');
    stub.app = newApp();
    stub.#server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => stub.#serve(request, response));
    await new Promise((resolve) => stub.#server.listen(0, '127.0.0.1', resolve));
    stub.url = `http://127.0.0.1:${stub.#server.address().port}`;
    return stub;
  }

  setTarget() {}

  #answer(method, path) {
    if (path.endsWith('/dispatches')) return [204, undefined];
    if (path.endsWith('/installation')) return [200, { id: 7001 }];
    if (path.endsWith('/access_tokens'))
      return [201, { token: `ghs_${randomBytes(18).toString('hex')}`, expires_at: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z/, 'Z'), permissions: { contents: 'write', metadata: 'read' } }];
    if (path === '/app') return [200, { id: this.app.id, slug: 'outpost-bench' }];
    if (path.includes('/branches/')) return [200, { name: 'main', commit: { sha: fakeSha('main'), commit: { message: 'tip' } } }];
    return [200, []];
  }

  #serve(request, response) {
    const { pathname } = new URL(request.url, this.url);
    this.requests++;
    if (pathname.endsWith('/dispatches')) this.dispatches.push(performance.now());
    const parts = [];
    const keeps = this.keepsBodies && pathname.endsWith('/dispatches');
    if (keeps) request.on('data', (part) => parts.push(part)).on('end', () => this.bodies.push(JSON.parse(Buffer.concat(parts).toString('utf8'))));
    request.resume().on('end', () => setTimeout(() => {
      const [status, body] = this.#answer(request.method, pathname);
      const text = body === undefined ? '' : JSON.stringify(body);
      response.writeHead(status, { 'content-type': 'application/json', ...(text && { 'content-length': Buffer.byteLength(text) }) }).end(text);
    }, this.delay)).on('error', () => {});
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
