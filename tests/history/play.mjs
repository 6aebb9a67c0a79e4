// Plays a world to a daemon, in the order of its days: webhooks as GitHub sends them, reports as vendors send them,
// and before anything goes on, what Outpost says of each pull request is read and kept.
import http from 'node:http';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { AUDIENCE, githubClaims } from '../github/oidc.mjs';
import { pullRequest, push as pushPayload } from '../github/payloads.mjs';
import { sameness } from './messages.mjs';
import { DAY, HOUR } from './world.mjs';

const UPSTREAM = 'pytorch/pytorch';
const WRITE_PAUSE = 1100; // what a content write has to wait for another one
const SHORT = 1000; // what is put off for some milliseconds is done after it
const LONGEST_PAUSE = 300_000;
const PATIENCE_LOOKS = 4000;

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const seconds = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
const isCut = (error) => ['ECONNRESET', 'EPIPE'].includes(error.code);

export class Play {
  #events = []; // sorted by time when needed
  #isSorted = true;
  #agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  #tokens = new Map();
  #runs = 0;
  #vendor;
  #toLook = new Set();
  #due; // when the next periodic run begins
  #taken = new Set(); // "dispatch accelerator"

  heads = new Map(); // SHA → head, of pull requests and of main
  pulls = new Map(); // number → pull request
  results = new Map(); // "SHA accelerator suite/test" → what its last report said, with the truth
  silent = new Set(); // "SHA accelerator": nobody will report
  failures = new Map(); // "accelerator/test" → [{at, same, author, files, sha, isPull}]
  passes = new Map(); // "SHA accelerator/test" → [at]
  tested = new Map(); // accelerator → [{index, at, reds: Map, others: Set}] of main
  cells = new Map(); // "SHA accelerator suite/test" → {head, pull, result, said: [{at, said, truth, reason, evidence}]}
  sent = { webhooks: 0, reports: 0, reads: 0, looks: 0 };
  problems = [];

  // documents(run, job) → {report (Outpost's), log} that its vendor hands in besides; hasStarts: vendors tell when a job
  // begins; isCut: nothing happens after the world's end, whatever is under way then; hasSchedules: periodic runs begin when
  // they are due
  constructor({ world, clock, slot = 3 * HOUR, say = () => {}, documents = () => ({}), hasStarts = false, isCut = false, hasSchedules = false }) {
    Object.assign(this, { world, clock, slot, say, documents, hasStarts, isCut, hasSchedules });
    this.byName = new Map(world.accelerators.map((accelerator) => [accelerator.name, accelerator]));
    for (const { name } of world.accelerators) this.tested.set(name, []);
    this.nextNumber = 1;
  }

  // ---- what GitHub knows (github.mjs asks) ----

  mergeBase(base, sha) {
    const head = this.heads.get(sha);
    if (!head || head.pull?.isUnknown) return null;
    return { sha: head.base.sha, ms: head.base.at };
  }

  files(number) { return this.pulls.get(number)?.files; }
  commitFiles(sha) { return this.heads.get(sha)?.files; }
  tip() { return this.world.tip.sha; }
  listed() {
    return [...this.pulls.values()].filter(({ isOpen }) => isOpen).map((pull) => this.#payload('opened', pull, pull.updatedAt).pull_request);
  }

  // ---- the order of things ----

  // isLater: the clock passes between it and what has the same key
  at(time, key, act, { looksAt, isLater } = {}) {
    this.#events.push({ time, key, act, looksAt, isLater });
    this.#isSorted = false;
  }

  // Those of the next hours, up to one that has to see what came of an earlier one of them.
  #next() {
    if (!this.#isSorted) this.#events.sort((a, b) => b.time - a.time);
    this.#isSorted = true;
    const batch = [], keys = new Set();
    for (let event; (event = this.#events.at(-1)) && (batch.length === 0 || event.time < batch[0].time + this.slot) && !((event.looksAt || event.isLater) && keys.has(event.key));) {
      keys.add(event.key);
      batch.push(this.#events.pop());
    }
    return batch;
  }

  async run({ outpost, github, issuer }) {
    Object.assign(this, { outpost, github, issuer });
    github.on('dispatch', (repository, body) => this.#dispatched(body.client_payload));
    github.on('comment', (number) => this.#toLook.add(number));
    for (const push of this.world.pushes) this.at(push.at, 'main', () => this.#push(push));
    this.world.pulls.forEach((plan, i) => this.at(plan.at, `plan ${i}`, () => this.#open(plan)));
    await this.#settle(3);
    for (let batch; (batch = this.#next()).length > 0;) {
      if (this.isCut && batch[0].time > this.world.end) break;
      this.say((batch[0].time - this.world.start) / DAY);
      await this.#stop(batch.at(-1).time);
      this.#pass(batch.at(-1).time);
      await this.#settle(3);
      await Promise.all(batch.filter(({ looksAt }) => looksAt).map(({ looksAt }) => this.#look(looksAt)));
      await this.#perform(batch);
      await this.#settle(2);
      this.clock.advance(SHORT);
      await this.#settle(2);
      await this.#lookAround();
    }
    for (const { number, isOpen } of this.pulls.values()) if (isOpen) this.#toLook.add(number);
    await this.#lookAround();
    this.#agent.destroy();
  }

  // Those of one pull request, or of main, one after the other.
  async #perform(batch) {
    const lines = new Map();
    for (const { key, act } of batch) lines.set(key, (lines.get(key) ?? Promise.resolve()).then(act));
    await Promise.all(lines.values());
  }

  // Until nothing is on its way, for so many looks. What waits for a budget of GitHub's is given the time that it waits for.
  async #settle(wanted) {
    let pause = WRITE_PAUSE, { requests } = this.github;
    for (let idle = 0, looks = 0; idle < wanted; looks++) {
      if (looks > PATIENCE_LOOKS) throw new Error(`not settled: ${JSON.stringify(this.lastStatus)}`);
      const status = await this.#get('/api/v1/status');
      this.lastStatus = status;
      const { deliveries, outbox, store, attribution } = status;
      const isMoving = deliveries.accepted > 0 || store.queued > 0;
      const isWaiting = outbox.due > 0 || outbox.sending > 0 || (attribution?.due ?? 0) > 0;
      idle = isMoving || isWaiting ? 0 : idle + 1;
      pause = this.github.requests > requests ? WRITE_PAUSE : Math.min(2 * pause, LONGEST_PAUSE);
      requests = this.github.requests;
      if (isWaiting && !isMoving) this.clock.advance(pause);
      else await sleep(1);
    }
  }

  // Up to `time` the clock stands still wherever a periodic run is due, as one that nobody moves would have passed there: the
  // daemon takes what it finds due a minute ago for missed.
  async #stop(time) {
    if (!this.hasSchedules) return;
    for (;;) {
      this.#due ??= await this.#nextDue();
      if (this.#due > time) return;
      this.#pass(this.#due);
      await this.#settle(3);
      const next = await this.#nextDue();
      if (next <= this.#due) throw new Error(`the periodic run of ${new Date(this.#due).toISOString()} was not begun`);
      this.#due = next;
    }
  }

  async #nextDue() {
    const { accelerators } = await this.#get('/api/v1/nightly?days=1&limit=1');
    return 1000 + Math.min(...accelerators.map(({ schedule }) => Date.parse(schedule?.next ?? '')).filter(Number.isFinite)); // whole seconds are said
  }

  // Hours pass: connections that lie idle will be closed by then.
  #pass(time) {
    if (time <= this.clock.now()) return;
    this.#agent.destroy();
    this.clock.advanceTo(time);
  }

  // ---- HTTP ----

  #request(method, path, { headers, body } = {}, agent = this.#agent) {
    const { hostname, port } = new URL(this.outpost.url);
    return new Promise((resolve, reject) => {
      const request = http.request({ host: hostname, port, method, path, agent, headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) } }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString('utf8') }));
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  // A connection that was idle for hours is one that the server closed; all that is sent may be sent twice.
  async #send(method, path, options) {
    try {
      return await this.#request(method, path, options);
    } catch (error) {
      if (!isCut(error)) throw error;
      return this.#request(method, path, options, false);
    }
  }

  async #get(path) {
    this.sent.reads++;
    const { status, text } = await this.#send('GET', path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  async #deliver(event, payload) {
    const body = JSON.stringify(payload);
    const { status, text } = await this.#send('POST', '/github/webhook', { body, headers: {
      'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': randomUUID(),
      'x-hub-signature-256': `sha256=${createHmac('sha256', this.github.secret).update(body).digest('hex')}`,
    } });
    this.sent.webhooks++;
    if (status !== 202) throw new Error(`webhook ${event}: ${status} ${text}`);
  }

  // ---- main ----

  async #push(push) {
    const before = this.world.tip;
    push.commits.forEach((commit, i) => {
      const isLast = i === push.commits.length - 1;
      this.world.land({ ...commit, at: push.at, breaks: isLast ? push.breaks : [], fixes: isLast ? push.fixes : [] });
    });
    await this.#pushed(before, push.at);
  }

  async #pushed(before, at) {
    const commits = this.world.main.slice(before.index + 1), { tip } = this.world;
    for (const commit of commits) this.heads.set(commit.sha, { sha: commit.sha, base: commit, breaks: [], author: commit.author, files: commit.files, isMain: true });
    const payload = pushPayload({ branch: 'main', before: before.sha, after: tip.sha });
    payload.commits = commits.map(({ sha, author, files, title }) => ({
      ...payload.commits[0], id: sha, message: `${title}\n\nmore`, timestamp: seconds(at), author: { name: author, username: author, email: 'a@example.com' },
      committer: { name: 'GitHub', username: 'web-flow', email: 'noreply@github.com' }, added: [], removed: [], modified: files,
    }));
    payload.head_commit = payload.commits.at(-1);
    payload.repository.pushed_at = Math.floor(at / 1000);
    await this.#deliver('push', payload);
  }

  // ---- pull requests ----

  #payload(action, pull, at, more = {}) {
    return pullRequest(action, {
      number: pull.number, headSha: pull.head.sha, baseSha: this.world.tip.sha, author: pull.author, title: pull.title,
      association: 'CONTRIBUTOR', updatedAt: seconds(at), createdAt: seconds(pull.at), ...more,
    });
  }

  #baseOf(dice) {
    const age = dice.chance(0.75) ? dice.below(8) : dice.below(40);
    return this.world.main[Math.max(0, this.world.tip.index - age)];
  }

  // Another pull request to stand on, or to try again.
  #other(dice, fits) {
    const found = [...this.pulls.values()].filter(fits);
    return found.length > 0 ? dice.pick(found) : undefined;
  }

  #open({ kind, at, from }) {
    const { world } = this;
    const number = this.nextNumber++;
    const dice = world.dice('pull', number);
    const isRecent = (one) => one.breaks.length > 0 && at - one.at < 4 * DAY;
    const fits = { stacked: (one) => isRecent(one) && one.isOpen, sibling: (one) => isRecent(one) && one.mistakes.length > 0 }[kind];
    const parent = from ?? (fits && this.#other(dice, fits));
    const pull = {
      number, kind: parent || !['stacked', 'sibling'].includes(kind) ? kind : 'real', at, parent, dice, isOpen: true, author: dice.pick(world.authors),
      title: world.title(dice), files: world.someFiles(dice), breaks: [], mistakes: [], base: this.#baseOf(dice), round: 0, isUnknown: dice.chance(0.04),
    };
    if (parent && (kind === 'sibling' || dice.chance(kind === 'reland' ? 0.8 : 0.75))) pull.author = parent.author;
    if (kind === 'stacked' && parent) Object.assign(pull, { base: parent.base, files: [...parent.files, ...pull.files], breaks: [...parent.breaks] });
    if (kind === 'sibling' && parent) Object.assign(pull, { breaks: [...parent.mistakes], files: [parent.files[0], ...pull.files] }); // the same mistake is in the same file
    if (kind === 'reland') Object.assign(pull, { files: parent.files, base: world.tip, breaks: dice.chance(0.6) ? parent.landed : [] });
    if (['real', 'lands broken'].includes(pull.kind) || (pull.kind === 'stacked' && dice.chance(0.4)))
      pull.mistakes.push(world.breakage(dice, { vague: 0.3 }));
    pull.breaks.push(...pull.mistakes);
    this.pulls.set(number, pull);
    this.#plan(pull);
    return this.#newHead(pull, 'opened', at);
  }

  #plan(pull) {
    const { dice } = pull;
    let time = pull.at;
    for (let n = dice.below(3); n > 0; n--) {
      time += (2 + dice.number() * 40) * HOUR;
      this.at(time, pull.number, this.#update.bind(this, pull, time), { looksAt: pull });
    }
    const end = time + (8 + dice.number() ** 2 * 200) * HOUR;
    this.at(end, pull.number, this.#close.bind(this, pull, end), { looksAt: pull });
  }

  #newHead(pull, action, at) {
    const before = pull.head?.sha;
    pull.head = {
      sha: sha1(`${this.world.seed} pull ${pull.number} ${++pull.round}`), base: pull.base, breaks: pull.breaks, author: pull.author, files: pull.files, pull, at, isPull: true,
    };
    pull.updatedAt = at;
    this.heads.set(pull.head.sha, pull.head);
    return this.#deliver('pull_request', this.#payload(action, pull, at, { before }));
  }

  #update(pull, at) {
    const { dice } = pull;
    if (dice.chance(0.5)) pull.base = this.#baseOf(dice);
    if (pull.kind !== 'lands broken' && dice.chance(0.35)) pull.breaks = [];
    return this.#newHead(pull, 'synchronize', at);
  }

  // Merged unless it is red; some are merged although they are, and taken back, and tried again.
  async #close(pull, at) {
    const isMerged = pull.breaks.length === 0 || pull.kind === 'lands broken';
    pull.isOpen = false;
    pull.updatedAt = at;
    await this.#deliver('pull_request', this.#payload('closed', pull, at, { merged: isMerged }));
    if (!isMerged) return;
    const { dice, author, files, title } = pull;
    const breaks = pull.breaks.filter((one) => !this.world.tip.broken.includes(one));
    pull.landed = breaks;
    this.at(at + 60_000, 'main', () => this.#push({ at: at + 60_000, commits: [{ author, files, title }], breaks, fixes: [] }));
    if (breaks.length === 0) return;
    const reverted = at + (2 + dice.number() * 30) * HOUR, again = reverted + (1 + dice.number() ** 2 * 90) * HOUR;
    if (again > this.world.end) return;
    this.at(reverted, 'main', () => this.#push({ at: reverted, commits: [{ author: dice.pick(this.world.authors), files, title: `Revert "${title}"` }], breaks: [], fixes: breaks }));
    this.at(again, `again ${pull.number}`, () => this.#open({ kind: 'reland', at: again, from: pull }));
  }

  // ---- vendors ----

  // A vendor's own CI, for those accelerators that have no workflow on GitHub.
  async startVendor() {
    this.#vendor = http.createServer({ keepAlive: true, keepAliveTimeout: 600_000 }, (request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        if (['pull_request', 'push', 'nightly'].includes(request.headers['x-outpost-event'])) this.#dispatched(JSON.parse(Buffer.concat(parts).toString('utf8')));
        response.writeHead(202, { 'content-length': 0 }).end();
      });
    }).listen(0, '127.0.0.1');
    await once(this.#vendor, 'listening');
    return `http://127.0.0.1:${this.#vendor.address().port}/`;
  }

  async closeVendor() {
    this.#vendor.close();
    this.#vendor.closeAllConnections();
    await once(this.#vendor, 'close');
  }

  #dispatched({ event_type: event, delivery_id: delivery, payload, outpost }) {
    if (payload.action === 'closed') return;
    const isNightly = event === 'nightly';
    const head = this.heads.get(payload.pull_request?.head.sha ?? payload.after);
    if (!head) return; // main as it was before the first push
    for (const name of outpost.accelerators) {
      if (this.#taken.has(`${outpost.dispatch_id} ${name}`)) continue; // the same dispatch again: an answer was lost
      this.#taken.add(`${outpost.dispatch_id} ${name}`);
      const accelerator = this.byName.get(name);
      const dice = this.world.dice('job', name, head.sha);
      const time = this.clock.now() + (0.2 + dice.number() * 1.5) * accelerator.slow * HOUR;
      const run = { accelerator, head: isNightly ? { ...head, round: 'nightly' } : head, event, delivery, dispatch: outpost.dispatch_id, token: outpost.callback_token, id: String(++this.#runs), attempt: 1, dice };
      if (this.hasStarts) this.at(this.clock.now() + (time - this.clock.now()) * (0.05 + 0.3 * dice.number()), `run ${run.id}`, () => this.#begin(run, time));
      this.at(time, `run ${run.id}`, () => this.#finish(run, time), { isLater: true });
    }
  }

  #begin(run, endsAt) {
    const jobs = this.#isWanted(run) ? this.world.run(run.accelerator, run.head, run.attempt, endsAt) ?? [] : [];
    return Promise.all(jobs.map((job) => this.#tell(run, this.#workflow(run, job, { status: 'in_progress' }))));
  }

  #workflow({ accelerator, event, id, attempt }, job, more) {
    return { name: event === 'nightly' ? 'nightly' : 'tests', job_name: job.name, run_id: id, run_attempt: attempt, url: `https://ci.example/${accelerator.name}/${id}`, ...more };
  }

  #isWanted({ head, dice }) {
    const { pull } = head;
    return !pull || (pull.isOpen && pull.head === head) || dice.chance(0.2);
  }

  async #finish(run, at) {
    const { accelerator, head, dice } = run;
    if (!this.#isWanted(run)) return;
    const jobs = this.world.run(accelerator, head, run.attempt, at);
    if (!jobs) {
      this.silent.add(`${head.sha} ${accelerator.name}`);
      return;
    }
    await Promise.all(jobs.map((job) => this.#report(run, job)));
    if (run.event === 'nightly') return; // no evidence, and nobody tries it again
    this.#note(run, jobs.flatMap(({ tests }) => tests), at);
    const isRed = jobs.some(({ conclusion }) => conclusion === 'failure');
    if (run.attempt > 2 || !isRed || !dice.chance(head.isPull ? 0.3 : 0.1)) return;
    const again = at + (0.5 + dice.number() * 5) * HOUR;
    this.at(again, `run ${run.id}`, () => this.#finish({ ...run, attempt: run.attempt + 1 }, again));
  }

  async #token(accelerator) {
    const now = Math.floor(this.clock.now() / 1000);
    const known = this.#tokens.get(accelerator.name);
    if (known?.until > now) return known.token;
    const token = await this.issuer.mint({ ...githubClaims(`vendors/${accelerator.name}`), aud: AUDIENCE, iat: now, nbf: now - 5, exp: now + 86_400 });
    this.#tokens.set(accelerator.name, { token, until: now + 40_000 });
    return token;
  }

  async #report(run, job) {
    const { report, log } = this.documents(run, job);
    const tests = report ? undefined : job.tests.map(({ suite, name, status, message }) => ({ suite, name, status, message }));
    const { token, id } = await this.#tell(run, this.#workflow(run, job, { status: 'completed', conclusion: job.conclusion, tests }));
    this.sent.reports++;
    if (id) await this.#handIn(id, token, { report: report && JSON.stringify(report), log });
  }

  async #tell(run, workflow) {
    const { accelerator, delivery } = run;
    const path = accelerator.isGithub ? '/github/callback' : `/api/v1/dispatches/${run.dispatch}/jobs`;
    const token = accelerator.isGithub ? await this.#token(accelerator) : run.token;
    const body = accelerator.isGithub ? { event_type: run.event, delivery_id: delivery, payload: {}, outpost: { dispatch_id: run.dispatch }, workflow } : workflow;
    const { status, text } = await this.#send('POST', path, { body: JSON.stringify(body), headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } });
    this.#expect(status, 200, `job of ${accelerator.name}: ${text}`);
    return { token, id: status === 200 ? JSON.parse(text).job : undefined };
  }

  async #handIn(id, token, documents) {
    for (const [kind, body] of Object.entries(documents)) {
      if (body === undefined) continue;
      const { status, text } = await this.#send('PUT', `/api/v1/jobs/${id}/${kind}`, { body, headers: { authorization: `Bearer ${token}`, 'content-type': kind === 'log' ? 'text/plain' : 'application/json' } });
      this.#expect(status, 200, `${kind} of job ${id}: ${text}`);
    }
  }

  #expect(status, wanted, what) {
    if (status !== wanted) this.problems.push(`${new Date(this.clock.now()).toISOString()}: ${status}, not ${wanted}: ${what}`);
  }

  // ---- the truth, as far as it was reported ----

  #note({ accelerator: { name }, head }, tests, at) {
    const reds = new Map(), others = new Set();
    for (const result of tests) {
      const test = `${result.suite}/${result.name}`;
      this.results.set(`${head.sha} ${name} ${test}`, result);
      if (result.truth) {
        reds.set(test, result);
        this.#append(this.failures, `${name} ${test}`, { at, same: sameness(result), author: head.author, files: head.files, sha: head.sha, truth: result.truth });
      } else if (result.status === 'PASS') this.#append(this.passes, `${head.sha} ${name} ${test}`, at);
      else others.add(test);
    }
    if (head.isMain) this.tested.get(name).push({ index: head.base.index, at, reds, others });
  }

  #append(map, key, value) {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  }

  // ---- what Outpost says ----

  async #lookAround() {
    const numbers = [...this.#toLook];
    this.#toLook.clear();
    await Promise.all(numbers.map((number) => this.#look(this.pulls.get(number))));
  }

  async #look(pull) {
    this.sent.looks++;
    const said = await this.#get(`/api/v1/pulls/${pull.number}`);
    if (said.head_sha !== pull.head.sha) {
      this.problems.push(`#${pull.number}: shows ${said.head_sha}, its head is ${pull.head.sha}`);
      return;
    }
    const at = this.clock.now();
    for (const verdict of said.verdicts) this.#hear(pull, verdict, at);
  }

  #hear(pull, verdict, at) {
    const test = `${verdict.suite}/${verdict.test}`;
    const key = `${pull.head.sha} ${verdict.accelerator} ${test}`;
    const result = this.results.get(key) ?? (verdict.suite === 'dispatch' && { truth: 'outage', status: 'MISS' });
    if (!result || (verdict.suite !== 'dispatch' && result.status !== verdict.status)) {
      this.problems.push(`#${pull.number} ${verdict.accelerator} ${test}: shows ${verdict.status}, reported was ${result?.status ?? 'nothing'}`);
      return;
    }
    if (!verdict.attribution) {
      this.cells.delete(key); // green in a later attempt
      return;
    }
    const cell = this.cells.get(key) ?? { pull, head: pull.head, accelerator: verdict.accelerator, test, said: [] };
    Object.assign(cell, { result, at, job: verdict.job });
    this.cells.set(key, cell);
    const last = cell.said.at(-1);
    if (last?.said !== verdict.attribution || last.truth !== result.truth)
      cell.said.push({ at, said: verdict.attribution, truth: result.truth, reason: verdict.reason, evidence: verdict.evidence_url });
  }
}
