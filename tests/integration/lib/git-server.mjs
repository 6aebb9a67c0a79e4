// A git repository served as GitHub serves it: smart HTTP over TLS, by git's own http-backend. A test can write trees
// that git itself refuses.
//
//   const git = await GitServer.start({ repository: 'pytorch-fdn/registry' });
//   git.commit({ 'accelerators.d/npu.yml': 'name: npu\n…' });        // → SHA of main's new tip
//   git.url, git.certificate
//   git.mode = 'down';                                               // or 'silent', 'serve'
//   git.redirect = (url) => 'https://elsewhere/…';                   // the target of a redirect, or undefined for none
//   git.redirectStatus = 301;                                        // 302 by default
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import { removeFolder } from './folder.mjs';

const MODES = { '100644': 'blob', '100755': 'blob', '120000': 'blob', '160000': 'commit', '40000': 'tree' };

export class GitServer {
  requests = []; // 'GET /owner/name.git/info/refs?service=git-upload-pack'
  mode = 'serve';
  redirect = () => undefined;
  redirectStatus = 302;
  #server;
  #silent = new Set();

  static async start({ repository }) {
    const self = new GitServer();
    self.repository = repository;
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-git-'));
    self.certificate = path.join(self.dir, 'ca.pem');
    const key = path.join(self.dir, 'key.pem');
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', self.certificate, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], { stdio: 'ignore' });
    self.repo = path.join(self.dir, `${repository}.git`);
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', self.repo]);
    self.#server = https.createServer({ minVersion: 'TLSv1.3', key: await fs.readFile(key), cert: await fs.readFile(self.certificate) }, (request, response) => self.#handle(request, response));
    self.#server.listen(0, '127.0.0.1');
    await once(self.#server, 'listening');
    self.url = `https://localhost:${self.#server.address().port}/${repository}.git`;
    return self;
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await removeFolder(this.dir);
  }

  git(args, input) {
    return execFileSync('git', ['--git-dir', this.repo, ...args], { input, maxBuffer: 64 << 20, env: { ...process.env, GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org' } }).toString().trim();
  }

  // Writes an object as git does. A test writes hundreds, and each call of git would start a process.
  #object(type, content) {
    const raw = Buffer.concat([Buffer.from(`${type} ${Buffer.byteLength(content)}\0`), Buffer.from(content)]);
    const id = createHash('sha1').update(raw).digest('hex');
    const folder = path.join(this.repo, 'objects', id.slice(0, 2));
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, id.slice(2)), deflateSync(raw));
    return id;
  }

  blob(content) {
    return this.#object('blob', content);
  }

  // entries: [mode, name, id], written in this order without a check.
  tree(entries) {
    return this.#object('tree', Buffer.concat(entries.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')])));
  }

  // Commits this root tree to main, on top of its tip or (fresh) without a parent.
  commitTree(root, { fresh = false } = {}) {
    const parent = fresh || !this.tip ? '' : `parent ${this.tip}\n`;
    const person = `a <a@example.org> ${Math.floor(Date.now() / 1000)} +0000`;
    const tip = this.#object('commit', `tree ${root}\n${parent}author ${person}\ncommitter ${person}\n\nregistry\n`);
    this.reset(tip);
    return tip;
  }

  // {name: text} in accelerators.d
  commit(files, options) {
    return this.commitEntries(Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => ['100644', name, this.blob(text)]), options);
  }

  commitEntries(entries, options) {
    for (const [mode] of entries) if (!(mode in MODES)) throw new Error(`mode ${mode}`);
    return this.commitTree(this.tree([['40000', 'accelerators.d', this.tree(entries)]]), options);
  }

  // Serves this repository under another path, too.
  serveAlsoAs(repository) {
    execFileSync('git', ['clone', '--quiet', '--bare', this.repo, path.join(this.dir, `${repository}.git`)]);
  }

  reset(sha) {
    this.tip = sha;
    const ref = path.join(this.repo, 'refs/heads/main');
    writeFileSync(`${ref}.new`, `${sha}\n`);
    renameSync(`${ref}.new`, ref);
  }

  #handle(request, response) {
    this.requests.push(`${request.method} ${request.url}`);
    if (this.mode === 'down') {
      response.writeHead(503).end('down\n');
      return;
    }
    if (this.mode === 'silent') {
      this.#silent.add(response);
      return;
    }
    const location = this.redirect(request.url);
    if (location) {
      response.writeHead(this.redirectStatus, { location, ...(this.isTerse && { 'content-length': 0 }) }).end();
      return;
    }
    const { pathname, searchParams } = new URL(request.url, 'https://localhost');
    const backend = spawn('git', ['http-backend'], { env: {
      PATH: process.env.PATH, GIT_PROJECT_ROOT: this.dir, GIT_HTTP_EXPORT_ALL: '1', REQUEST_METHOD: request.method, PATH_INFO: pathname,
      QUERY_STRING: searchParams.toString(), CONTENT_TYPE: request.headers['content-type'] ?? '', HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      ...(request.headers['content-length'] && { CONTENT_LENGTH: request.headers['content-length'] }),
      ...(request.headers['git-protocol'] && { GIT_PROTOCOL: request.headers['git-protocol'] }),
    }, stdio: ['pipe', 'pipe', 'inherit'] });
    backend.stdin.on('error', () => {});
    request.pipe(backend.stdin);
    const parts = [];
    backend.stdout.on('data', (part) => parts.push(part));
    backend.on('close', () => {
      const all = Buffer.concat(parts);
      const end = all.indexOf('\r\n\r\n');
      const headers = Object.fromEntries(all.subarray(0, end).toString('latin1').split('\r\n').map((line) => line.split(/: */, 2)));
      const { Status: status = '200', ...rest } = headers;
      response.writeHead(parseInt(status, 10), rest).end(all.subarray(end + 4));
    });
  }
}
