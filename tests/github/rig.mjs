// The test rig: an offline GitHub that is as real as possible, on loopback, in one process.
//
//   client under test → this front (records, injects faults, checks tokens, limits)
//                     → Prism on GitHub's own OpenAPI description (description.mjs)
//                     → the rig's own state for /dispatches, /app/hook/* and a pull's files;
//                       emulate for most others (world.mjs); Prism's mock for the rest
//
// As a module: const rig = await startRig({...}); … await rig.close().
// As a program: `node tests/github/rig.mjs [--port N] [--target URL] …` prints one JSON line with its
// addresses and runs until stdin closes or SIGTERM comes. All methods are then available over HTTP
// below /_rig/ (see control.mjs).
//
// The rig checks requests and its own answers against the description and records violations. It does not check answers of
// emulate, which omit some required fields (rig.emulatorGaps() lists them, with the option gaps).
import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { control } from './control.mjs';
import { Deliveries } from './deliveries.mjs';
import { Description, NotServed } from './description.mjs';
import { Faults } from './faults.mjs';
import { rsaKey } from './keys.mjs';
import { WAIT_MS } from './patience.mjs';
import { Gate, fingerprint } from './tokens.mjs';
import { World } from './world.mjs';

const DISPATCH_LIMIT = 64 * 1024; // bytes; GitHub's description has it only as text
const DISPATCH_KEYS = 10;
const COMMENT_LIMIT = 65_536; // characters
const BODY_LIMIT = 32 << 20;
const RATE_LIMIT = 15_000;
const DOCS = 'https://docs.github.com/rest';

const DEFAULT_REPOSITORIES = [
  { name: 'pytorch/pytorch' },
  { name: 'pytorch-fdn/accelerator-test-infra' },
  { name: 'Ascend/pytorch' },
  { name: 'torch-spyre/torch-spyre' },
  { name: 'vllm-project/vllm' },
];
const PERMISSIONS = { actions: 'write', checks: 'write', contents: 'write', issues: 'write', metadata: 'read', pull_requests: 'write', statuses: 'write' };
const EVENTS = ['check_run', 'check_suite', 'issue_comment', 'pull_request', 'push'];

const json = (status, value, headers = {}) => ({
  status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body: value === undefined ? '' : JSON.stringify(value),
});
const problem = (status, message, more = {}) => json(status, { message, ...more, documentation_url: DOCS });

function readBody(request) {
  return new Promise((resolve, reject) => {
    const parts = [];
    let size = 0;
    request.on('data', (part) => {
      size += part.length;
      if (size <= BODY_LIMIT) parts.push(part);
    });
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    request.on('error', reject);
    request.on('aborted', () => reject(new Error('the client went away')));
  });
}

export class Rig extends EventEmitter {
  #server;
  #sockets = new Set();
  #description;
  #requests = [];
  #violations = [];
  #gaps; // text → count, or undefined if nobody asked for them
  #rates = new Map(); // client → {used, reset}
  #dispatches = [];
  #reactions = new Map(); // a comment's reactions path → reactions
  #reactionId = 0;
  #seq = 0;
  #closed = false;

  // options: port, target, appId, appSlug, secret, privateKey (PEM), repositories, members, tokenTtl (ms),
  // delay (ms that each answer takes), gaps (compare emulate's answers with the description)
  static async start(options = {}) {
    const rig = new Rig();
    rig.setMaxListeners(0);
    rig.delay = options.delay ?? 0;
    if (options.gaps) rig.#gaps = new Map();
    rig.secret = options.secret ?? randomBytes(20).toString('hex');
    rig.app = {
      id: options.appId ?? 12345, slug: options.appSlug ?? 'outpost-test', name: 'Outpost (test)',
      permissions: PERMISSIONS, events: EVENTS,
      privateKey: options.privateKey ?? rsaKey(),
    };
    rig.bot = `${rig.app.slug}[bot]`;
    rig.#server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => rig.#serve(request, response));
    rig.#server.on('connection', (socket) => {
      rig.#sockets.add(socket);
      socket.on('close', () => rig.#sockets.delete(socket));
    });
    const listening = new Promise((resolve, reject) => {
      rig.#server.once('error', reject);
      rig.#server.listen(options.port ?? 0, '127.0.0.1', resolve);
    });
    await listening;
    rig.url = `http://127.0.0.1:${rig.#server.address().port}`;
    rig.faults = new Faults({ limit: RATE_LIMIT });
    rig.deliveries = new Deliveries({ secret: rig.secret, target: options.target });
    [rig.#description, rig.world] = await Promise.all([
      Description.open(),
      World.open({ baseUrl: rig.url, app: rig.app, repositories: options.repositories ?? DEFAULT_REPOSITORIES, members: options.members ?? ['alice'] }),
    ]);
    rig.gate = new Gate({ app: rig.app, world: rig.world, tokenTtl: options.tokenTtl ?? 3_600_000 });
    return rig;
  }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    await this.deliveries.settle();
    const ended = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await ended;
  }

  // ---- for tests --------------------------------------------------------------

  setTarget(url) { this.deliveries.target = url; }
  fault(rule) { return this.faults.add(rule); }
  clearFaults() { this.faults.remove(); }
  violations() { return this.#violations; }
  emulatorGaps() { return [...this.#gaps ?? []].map(([gap, count]) => ({ gap, count })); }
  expireTokens() { this.gate.expireTokens(); }
  issues(repository) { return this.world.issues(repository); }
  comments(repository, number) { return this.world.comments(repository, number); }
  checkRuns(repository, sha) { return this.world.checkRuns(repository, sha); }
  reactions(repository, commentId) { return this.#reactions.get(`/repos/${repository}/issues/comments/${commentId}/reactions`) ?? []; }
  openPull(repository, options) { return this.world.openPull(repository, options); }
  updatePull(repository, number, changes) { return this.world.updatePull(repository, number, changes); }
  push(repository, options) { return this.world.push(repository, options); }

  deliver(event, payload, options = {}) {
    const name = payload?.repository?.full_name;
    const installation = name && this.world.installationOf(name)?.installation_id;
    const body = installation && !options.body ? { ...payload, installation: { id: installation, node_id: 'MDIzOkluc3RhbGxhdGlvbg==' } } : payload;
    return this.deliveries.deliver(event, body, options);
  }

  // filter: {method, path (pattern as in faults), after (seq)}
  requests({ method, path, after = 0 } = {}) {
    const regexp = path instanceof RegExp ? path : path && new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+').replace(/\*$/, '.*')}$`, 'i');
    return this.#requests.filter((one) => one.seq > after && (!method || one.method === method) && (!regexp || regexp.test(one.path)));
  }

  // repository_dispatch events that GitHub accepted.
  dispatches({ repository, after = 0 } = {}) {
    return this.#dispatches.filter((one) => one.seq > after && (!repository || one.repository.toLowerCase() === repository.toLowerCase()));
  }

  // Resolves with the first accepted dispatch that fits, past or future.
  waitForDispatch(filter = {}) {
    const fits = (one) => (!filter.repository || one.repository.toLowerCase() === filter.repository.toLowerCase())
      && one.seq > (filter.after ?? 0) && (!filter.where || filter.where(one));
    const found = this.#dispatches.find(fits);
    if (found) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.off('dispatch', look);
        reject(new Error(`no dispatch to ${filter.repository ?? 'any repository'} within ${WAIT_MS} ms`));
      }, WAIT_MS).unref();
      const look = (one) => {
        if (!fits(one)) return;
        clearTimeout(timer);
        this.off('dispatch', look);
        resolve(one);
      };
      this.on('dispatch', look);
    });
  }

  // ---- the front --------------------------------------------------------------------------------

  async #serve(request, response) {
    const url = new URL(request.url, this.url);
    try {
      if (url.pathname.startsWith('/_rig/')) {
        await control(this, request, response, url, readBody);
        return;
      }
      await this.#github(request, response, url);
    } catch (error) {
      if (request.destroyed || response.destroyed) return;
      this.#violations.push({ method: request.method, path: url.pathname, what: 'rig', problems: [{ message: `the rig failed: ${error.stack}` }] });
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { 'content-type': 'text/plain' }).end('the rig failed');
    }
  }

  async #github(request, response, url) {
    const text = await readBody(request);
    const { authorization, ...headers } = request.headers;
    const record = {
      seq: ++this.#seq, time: new Date().toISOString(), method: request.method, path: url.pathname, query: url.search,
      headers, token: authorization ? fingerprint(authorization.replace(/^\S+\s+/, '')) : null, body: text,
    };
    this.#requests.push(record);
    this.emit('request', record);
    const fault = this.faults.strike(request.method, url.pathname);
    record.fault = fault?.kind;
    if (fault?.when === 'before') return this.#break(fault, record, request, response);
    const answer = this.#finish(await this.#answer(request, url, text, record), request, record);
    if (this.delay > 0) await new Promise((resolve) => setTimeout(resolve, this.delay));
    if (fault) return this.#break(fault, record, request, response, answer);
    record.status = answer.status;
    this.#send(request, response, answer);
    return undefined;
  }

  #send(request, response, answer) {
    const empty = answer.status === 204 || answer.status === 304;
    const body = empty ? '' : answer.body ?? '';
    response.writeHead(answer.status, {
      ...(empty ? {} : { 'content-type': 'application/json; charset=utf-8' }), ...answer.headers,
      ...(empty ? {} : { 'content-length': Buffer.byteLength(body) }),
    });
    response.end(request.method === 'HEAD' ? '' : body);
  }

  async #break(fault, record, request, response, answer) {
    switch (fault.kind) {
      case 'reset':
        record.status = 'reset';
        request.socket.resetAndDestroy();
        return;
      case 'close': // as a load balancer does: no byte of an answer, and a proper end
        record.status = 'close';
        request.socket.end();
        return;
      case 'hang': // until the client gives up or the rig closes
        record.status = 'hang';
        return;
      case 'slow':
        await new Promise((resolve) => setTimeout(resolve, fault.ms));
        record.status = answer.status;
        this.#send(request, response, answer);
        return;
      case 'truncate': {
        const body = Buffer.from(answer.body || '{"id": 1, "body": "cut off');
        record.status = 'truncated';
        response.writeHead(answer.status === 204 ? 200 : answer.status, { ...answer.headers, 'content-length': body.length });
        response.write(body.subarray(0, Math.ceil(body.length / 2)), () => request.socket.destroy());
        return;
      }
      default: {
        const broken = this.#finish({ ...fault.answer, headers: { ...fault.answer.headers } }, request, record);
        record.status = broken.status;
        this.#send(request, response, broken);
      }
    }
  }

  // Adds the headers of each GitHub answer: the budget, a request id, an ETag.
  #finish(answer, request, record) {
    const client = record.installation ?? record.token ?? 'anonymous';
    const now = Math.floor(Date.now() / 1000);
    let rate = this.#rates.get(client);
    if (!rate || rate.reset <= now) this.#rates.set(client, rate = { used: 0, reset: now + 3600 });
    const headers = { 'x-github-media-type': 'github.v3; format=json', 'x-github-request-id': `RIG:${record.seq}`, ...answer.headers };
    if (request.method === 'GET' && answer.status === 200) {
      headers.etag = `W/"${createHash('sha256').update(answer.body).digest('hex')}"`;
      if (request.headers['if-none-match'] === headers.etag) {
        delete headers['content-type'];
        answer = { status: 304, headers, body: '' };
      }
    }
    if (answer.status !== 304) rate.used++;
    return { ...answer, headers: {
      'x-ratelimit-limit': String(RATE_LIMIT), 'x-ratelimit-remaining': String(Math.max(0, RATE_LIMIT - rate.used)),
      'x-ratelimit-used': String(rate.used), 'x-ratelimit-reset': String(rate.reset), 'x-ratelimit-resource': 'core', ...headers,
    } };
  }

  #violation(record, what, problems) {
    this.#violations.push({ seq: record.seq, method: record.method, path: record.path, what, problems });
  }

  async #answer(request, url, text, record) {
    if (!request.headers['user-agent']) {
      this.#violation(record, 'request', [{ message: 'no User-Agent' }]);
      return problem(403, 'Request forbidden by administrative rules. Please make sure your request has a User-Agent header');
    }
    const admitted = await this.gate.admit({ method: request.method, path: url.pathname, authorization: request.headers.authorization });
    if (admitted.refused) return admitted.refused;
    record.installation = admitted.entry?.installation ?? null;
    let body;
    if (text !== '') {
      try {
        body = JSON.parse(text);
      } catch {
        this.#violation(record, 'request', [{ message: 'the body is no JSON' }]);
        return problem(400, 'Problems parsing JSON');
      }
    }
    const path = url.pathname;
    const query = {};
    for (const [key, value] of url.searchParams) query[key] = value;
    const outcome = await this.#description.apply(
      { method: request.method, path, query, headers: request.headers, body },
      async (operation) => {
        const answer = await this.#own(operation, { path, url, body, text, record, admitted, request })
          ?? await this.#emulate(url, request, text, admitted, record);
        const type = answer.headers['content-type'] ?? 'application/json';
        return {
          statusCode: answer.status, headers: { ...answer.headers, 'content-type': type }, body: answer.body === '' ? undefined : JSON.parse(answer.body),
          raw: answer, isUnchecked: record.source === 'emulate' && !this.#gaps,
        };
      },
    );
    if (outcome.request.length > 0) this.#violation(record, 'request', outcome.request);
    if (!outcome.answer) return problem(outcome.route ? 422 : 404, outcome.route ? 'Validation Failed' : 'Not Found', { errors: outcome.request });
    if (outcome.response.length > 0) {
      if (record.source !== 'emulate') {
        this.#violation(record, 'response', outcome.response);
      } else {
        for (const { at, message } of outcome.response) {
          const gap = `${request.method} ${outcome.route} ${outcome.answer.statusCode}: ${at.replace(/\.\d+/g, '.*')} ${message}`;
          this.#gaps.set(gap, (this.#gaps.get(gap) ?? 0) + 1);
        }
      }
    }
    const { statusCode, body: value, raw } = outcome.answer;
    return raw ?? json(statusCode, value);
  }

  async #emulate(url, request, text, admitted, record) {
    if (this.#isUnserved(url.pathname, request.method)) throw new NotServed();
    record.source = 'emulate';
    const answer = await this.world.request({
      method: request.method, target: url.pathname + url.search, headers: request.headers, body: text,
      token: admitted.kind === 'installation' ? admitted.token : undefined,
    });
    return answer;
  }

  // Operations without a route in emulate. Prism's mock answers them.
  #isUnserved(path, method) {
    return /\/statuses\/[^/]+$/.test(path) && method === 'POST'
      || /\/(rerun|rerun-failed-jobs)$/.test(path)
      || path === '/app/hook/config' || path === '/installation/repositories';
  }

  // Serves the rig's own state. Returns undefined for requests to emulate.
  async #own(operation, { path, url, body, text, record, admitted, request }) {
    const key = `${request.method} ${operation.path}`;
    const [, , owner, repo] = path.split('/');
    switch (key) {
      case 'POST /repos/{owner}/{repo}/dispatches':
        return this.#dispatch(`${owner}/${repo}`, body, text, record);
      case 'POST /app/installations/{installation_id}/access_tokens': {
        const answer = await this.#emulate(url, request, text, admitted, record);
        if (answer.status === 201) {
          const issued = this.gate.issue(Number(path.split('/')[3]), JSON.parse(answer.body), body ?? null);
          return json(201, issued);
        }
        return answer;
      }
      case 'GET /repos/{owner}/{repo}/pulls/{pull_number}/files':
        return this.#files(`${owner}/${repo}`, Number(path.split('/')[5]), url);
      case 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments':
      case 'PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}':
        if ([...body.body].length <= COMMENT_LIMIT) return undefined;
        this.#violation(record, 'request', [{ message: `a comment of ${[...body.body].length} characters` }]);
        return problem(422, 'Validation Failed', { errors: [{ resource: 'IssueComment', code: 'unprocessable', field: 'data', message: 'Body is too long (maximum is 65536 characters)' }] });
      case 'PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}': {
        const id = Number(path.split('/')[5]);
        const before = this.world.annotations(id);
        const answer = await this.#emulate(url, request, text, admitted, record);
        if (answer.status === 200) this.world.keepAnnotations(id, before, body.output?.annotations);
        return answer;
      }
      case 'GET /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions':
        return json(200, this.#reactions.get(path) ?? []);
      case 'POST /repos/{owner}/{repo}/issues/comments/{comment_id}/reactions':
        return this.#react(path, body.content);
      case 'GET /app/hook/deliveries': {
        const perPage = Math.min(100, Math.max(1, Number(url.searchParams.get('per_page') ?? 30)));
        const page = this.deliveries.page({ perPage, cursor: url.searchParams.get('cursor') ?? undefined, status: url.searchParams.get('status') ?? undefined });
        if (!page) return problem(400, 'Invalid cursor');
        const next = new URL(url);
        next.searchParams.set('per_page', perPage);
        if (page.next) next.searchParams.set('cursor', page.next);
        return json(200, page.items, page.next ? { link: `<${next}>; rel="next"` } : {});
      }
      case 'GET /app/hook/deliveries/{delivery_id}': {
        const found = this.deliveries.find(path.split('/')[4]);
        return found ? json(200, found) : problem(404, 'Not Found');
      }
      case 'POST /app/hook/deliveries/{delivery_id}/attempts':
        return this.deliveries.redeliver(path.split('/')[4]) ? json(202, {}) : problem(404, 'Not Found');
      default:
        return undefined;
    }
  }

  #react(path, content) {
    const list = this.#reactions.get(path) ?? [];
    const before = list.find((one) => one.content === content);
    if (before) return json(200, before);
    const reaction = {
      id: ++this.#reactionId, node_id: `RE_${this.#reactionId}`, content, created_at: new Date().toISOString(),
      user: this.world.user(this.bot, 'Bot'),
    };
    this.#reactions.set(path, [...list, reaction]);
    return json(201, reaction);
  }

  #dispatch(name, body, text, record) {
    const payload = body.client_payload ?? {};
    const size = Buffer.byteLength(JSON.stringify(payload));
    const refuse = (message) => {
      this.#violation(record, 'request', [{ message }]);
      return problem(422, `Invalid request.\n\n${message}`);
    };
    if (size >= DISPATCH_LIMIT || Buffer.byteLength(text) >= DISPATCH_LIMIT + 1024) return refuse('client_payload is too large.');
    if (Object.keys(payload).length > DISPATCH_KEYS) return refuse('No more than 10 properties are allowed; client_payload');
    const dispatch = { seq: record.seq, time: record.time, repository: this.world.repository(name).full_name, event_type: body.event_type, client_payload: payload };
    this.#dispatches.push(dispatch);
    this.emit('dispatch', dispatch);
    return { status: 204, headers: {}, body: '' };
  }

  #files(name, number, url) {
    let files;
    try {
      files = this.world.pullFiles(name, number);
    } catch {
      return problem(404, 'Not Found');
    }
    const perPage = Math.min(100, Number(url.searchParams.get('per_page') ?? 30));
    const page = Number(url.searchParams.get('page') ?? 1);
    const headers = {};
    if (page * perPage < files.length) {
      const next = new URL(url);
      next.searchParams.set('page', page + 1);
      headers.link = `<${next}>; rel="next"`;
    }
    return json(200, files.slice((page - 1) * perPage, page * perPage), headers);
  }
}

export const startRig = (options) => Rig.start(options);

async function main() {
  const { values } = parseArgs({ options: {
    port: { type: 'string' }, target: { type: 'string' }, secret: { type: 'string' }, 'app-id': { type: 'string' },
    key: { type: 'string' }, 'key-out': { type: 'string' }, repository: { type: 'string', multiple: true }, 'token-ttl': { type: 'string' },
  } });
  const rig = await startRig({
    port: Number(values.port ?? 0), target: values.target, secret: values.secret, appId: values['app-id'] && Number(values['app-id']),
    privateKey: values.key && await fs.readFile(values.key, 'utf8'), tokenTtl: values['token-ttl'] && Number(values['token-ttl']),
    repositories: values.repository?.map((name) => ({ name })),
  });
  if (values['key-out']) await fs.writeFile(values['key-out'], rig.app.privateKey, { mode: 0o600 });
  console.log(JSON.stringify({ url: rig.url, control: `${rig.url}/_rig/`, app_id: rig.app.id, app_slug: rig.app.slug, webhook_secret: rig.secret, pid: process.pid }));
  const stop = () => rig.close().then(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.stdin.resume().once('end', stop).once('error', stop);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
