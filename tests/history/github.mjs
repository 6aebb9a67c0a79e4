// A minimal GitHub for thousands of events: it accepts everything, answers at once and records comments. The rig (tests/github)
// checks whether requests are correct.
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import { rsaKey } from '../github/keys.mjs';

// One key for all instances in this process.
let key;
const appKey = () => (key ??= rsaKey());

const BOT = 'outpost-history';
const UPSTREAM = 'pytorch/pytorch';

// source: {mergeBase(baseOrSha, headSha) → {sha, ms} | null, files(number) → [path] | null, tip(branch) → sha,
//          pulls() → open pull requests as GitHub lists them}
export class Github extends EventEmitter {
  #server;
  #next = 1000;
  #comments = new Map(); // id → {number, body}
  #checks = new Map();
  bodies = []; // {number, body}: each version of each comment
  requests = 0;
  counts = {};
  unknown = new Set(); // requests without a handler
  secret = 'history';

  static async start(source) {
    const self = new Github();
    self.source = source;
    self.app = { id: 12345, privateKey: appKey() };
    self.#server = http.createServer({ keepAlive: true, keepAliveTimeout: 600_000 }, (request, response) => self.#serve(request, response));
    self.#server.listen(0, '127.0.0.1');
    await once(self.#server, 'listening');
    self.url = `http://127.0.0.1:${self.#server.address().port}`;
    return self;
  }

  setTarget() {} // the sender of webhooks knows the target

  async close() {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #serve(request, response) {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url, this.url);
      const text = Buffer.concat(parts).toString('utf8');
      const [status, value, headers] = this.#answer(request.method, decodeURIComponent(pathname), text ? JSON.parse(text) : undefined, searchParams);
      const body = value === undefined ? '' : JSON.stringify(value);
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers }).end(body);
    });
  }

  #answer(method, path, body, query) {
    this.requests++;
    for (const [name, verb, pattern, answer] of ROUTES) {
      const found = verb === method && pattern.exec(path);
      if (!found) continue;
      this.counts[name] = (this.counts[name] ?? 0) + 1;
      return answer.call(this, found.groups ?? {}, body, query);
    }
    this.unknown.add(`${method} ${path.replace(/[0-9a-f]{40}|\d+/g, '…')}`);
    return [404, { message: 'Not Found' }];
  }

  token() {
    return [201, { token: `ghs_${this.#next++}`, expires_at: new Date(8.64e12).toISOString() }];
  }

  dispatch({ repository }, body) {
    this.emit('dispatch', repository, body);
    return [204];
  }

  compare({ base, head }) {
    const found = this.source.mergeBase(base, head);
    if (!found) return [404, { message: 'Not Found' }];
    return [200, { merge_base_commit: { sha: found.sha, commit: { committer: { date: new Date(found.ms).toISOString() } } }, commits: [], files: [] }];
  }

  files({ number }, body, query) {
    const files = this.source.files(Number(number));
    if (!files) return [404, { message: 'Not Found' }];
    return [200, Number(query.get('page') ?? 1) > 1 ? [] : files.map((filename) => ({ filename, status: 'modified' }))];
  }

  commit({ sha }) {
    const files = this.source.commitFiles(sha);
    return files ? [200, { sha, files: files.map((filename) => ({ filename, status: 'modified' })) }] : [404, { message: 'Not Found' }];
  }

  branch({ name }) {
    const sha = this.source.tip(name);
    return sha ? [200, { name, commit: { sha } }] : [404, { message: 'Branch not found' }];
  }

  pulls(found, body, query) {
    const page = Number(query.get('page') ?? 1), size = Number(query.get('per_page') ?? 30);
    return [200, this.source.pulls().slice((page - 1) * size, page * size)];
  }

  pull({ number }) {
    const found = this.source.pulls().find((one) => one.number === Number(number));
    return found ? [200, found] : [404, { message: 'Not Found' }];
  }

  #write(id, number, body) {
    this.#comments.set(id, { number, body });
    this.bodies.push({ number, body });
    this.emit('comment', number, body);
    return { id, body, user: { login: `${BOT}[bot]`, type: 'Bot' }, html_url: `https://github.com/pytorch/pytorch/pull/${number}#issuecomment-${id}` };
  }

  createComment({ repository, number }, body) {
    if (repository !== UPSTREAM) return this.written(); // on a vendor's issue
    return [201, this.#write(this.#next++, Number(number), body.body)];
  }

  updateComment({ id }, body) {
    const there = this.#comments.get(Number(id));
    return there ? [200, this.#write(Number(id), there.number, body.body)] : [404, { message: 'Not Found' }];
  }

  readComment({ id }) {
    const there = this.#comments.get(Number(id));
    return there ? [200, { id: Number(id), body: there.body, user: { login: `${BOT}[bot]` } }] : [404, { message: 'Not Found' }];
  }

  listComments({ number }, body, query) {
    if (Number(query.get('page') ?? 1) > 1) return [200, []];
    return [200, [...this.#comments].filter(([, one]) => one.number === Number(number))
      .map(([id, { body: text }]) => ({ id, body: text, user: { login: `${BOT}[bot]` } }))];
  }

  check({ id = this.#next++ }, body) {
    const check = { ...this.#checks.get(Number(id)), ...body, id: Number(id) };
    this.#checks.set(check.id, check);
    return [201, check];
  }

  listChecks({ sha }) {
    const runs = [...this.#checks.values()].filter((check) => check.head_sha === sha);
    return [200, { total_count: runs.length, check_runs: runs.map((check) => ({ ...check, output: { annotations_count: 0 } })) }];
  }

  written() {
    return [201, { id: this.#next++, number: this.#next, html_url: 'https://github.com/vendor/repository/issues/1', state: 'open' }];
  }
}

const REPO = '/repos/(?<repository>[^/]+/[^/]+)';
const route = (name, method, path, answer) => [name, method, new RegExp(`^${path}$`), answer];
const G = Github.prototype;
const ROUTES = [
  route('dispatches', 'POST', `${REPO}/dispatches`, G.dispatch),
  route('comments written', 'PATCH', `${REPO}/issues/comments/(?<id>\\d+)`, G.updateComment),
  route('comments written', 'POST', `${REPO}/issues/(?<number>\\d+)/comments`, G.createComment),
  route('comparisons', 'GET', `${REPO}/compare/(?<base>.+?)\\.\\.\\.(?<head>.+)`, G.compare),
  route('file lists', 'GET', `${REPO}/pulls/(?<number>\\d+)/files`, G.files),
  route('commits', 'GET', `${REPO}/commits/(?<sha>[0-9a-f]{40})`, G.commit),
  route('reads', 'GET', `${REPO}/commits/(?<sha>[0-9a-f]{40})/check-runs`, G.listChecks),
  route('checks', 'POST', `${REPO}/check-runs`, G.check),
  route('checks', 'PATCH', `${REPO}/check-runs/(?<id>\\d+)`, G.check),
  route('reads', 'GET', `${REPO}/issues/comments/(?<id>\\d+)`, G.readComment),
  route('reads', 'GET', `${REPO}/issues/(?<number>\\d+)/comments`, G.listComments),
  route('branches', 'GET', `${REPO}/branches/(?<name>.+)`, G.branch),
  route('reads', 'GET', `${REPO}/pulls`, G.pulls),
  route('reads', 'GET', `${REPO}/pulls/(?<number>\\d+)`, G.pull),
  route('reads', 'GET', '/app/hook/deliveries', () => [200, []]),
  route('reads', 'GET', '/app', () => [200, { id: 12345, slug: BOT }]),
  route('reads', 'GET', `${REPO}/installation`, () => [200, { id: 1 }]),
  route('tokens', 'POST', '/app/installations/1/access_tokens', G.token),
  route('issues', 'GET', `${REPO}/issues`, () => [200, []]),
  route('issues', 'POST', `${REPO}/issues`, G.written),
  route('issues', 'PATCH', `${REPO}/issues/(?<number>\\d+)`, () => [200, {}]),
  route('reactions', 'POST', `${REPO}/issues/comments/(?<id>\\d+)/reactions`, G.written),
];
