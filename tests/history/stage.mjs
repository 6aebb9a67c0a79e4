// Plays one named scenario to its own daemon and compares each version of a comment and each answer of the API with the truth: a
// cell that the pull request breaks is never BASE, FLAKY or KNOWN in any version. README.md has the statements.
import { createHash } from 'node:crypto';
import { AUDIENCE, githubClaims } from '../github/oidc.mjs';
import { issueComment, pullRequest, push as pushPayload } from '../github/payloads.mjs';
import { Outpost } from '../integration/lib/outpost.mjs';
import { Dice } from '../kill/story.mjs';
import { Connection } from './connection.mjs';
import { fill } from './messages.mjs';
import { settle } from './settle.mjs';
import { commitOf, wordsIn } from './shown.mjs';
import { Words } from './story.mjs';

const START = Date.UTC(2026, 0, 5, 8);
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE;
const UNITS = { m: MINUTE, h: HOUR, d: 24 * HOUR };
const EXCUSES = ['KNOWN', 'BASE', 'FLAKY'];
const VERDICTS = [...EXCUSES, 'NEW', 'UNCLASSIFIED'];
const CHANGES = ['breaks', 'fixes', 'reverts', 'relands', 'unsettles'];
const BEHAVIOURS = ['honest', 'ignores-list', 'other-tests', 'base-for-head', 'head-for-base', 'one-run-for-both', 'silent', 'late', 'twice', 'all-skipped'];
const FINISH = 20 * HOUR;
const LOOKS_MAX = 2000; // for a dispatch, which takes a while on a busy machine

const sha1 = (text) => createHash('sha1').update(text).digest('hex');
const seconds = (ms) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
const WORST = ['guilty', 'both', 'unsettled', 'base', 'flaky', 'infra'];

export class Stage {
  #messages = new Map();
  #jobs = ['tests'];
  #jobsOf = new Map(); // test → [job]
  #tests = new Set(['steady']);
  #commits = new Map();
  #pulls = new Map();
  #tips = new Map();
  #called = new Map(); // test or job → its real name
  #dispatches = new Map(); // "SHA accelerator" → the last dispatch to its vendor
  #attempts = new Map(); // dispatch → attempts
  #asked = []; // experiments without an answer of their vendors
  #outcomes = new Map(); // "side pull" → [annotations]
  #machines = new Map(); // accelerator → [cause], the failures of its machine in any test
  #truth = new Map(); // "SHA accelerator suite/test job" → truth of the last report
  #nextNumber = 1;
  #commands = 0; // of operators
  #settled; // #happened when the daemon was idle

  finals = new Map(); // "PULL SHA accelerator test" → {verdict, reason}
  experiments = []; // {pull, side, accelerator, tests}
  problems = [];
  excuses = new Set();

  // isExperimenting: the vendors run experiments
  constructor(story, { isExperimenting, clock, github, issuer, vendorUrl }) {
    Object.assign(this, { story, isExperimenting, clock, github, issuer, vendorUrl });
    this.dice = new Dice(Number.parseInt(sha1(story.name).slice(0, 8), 16));
    this.accelerators = this.#accelerators();
    // A test exists from the beginning, even if its statement is late.
    for (const { verb, text } of story.statements) {
      if (['message', 'call', 'member', 'known'].includes(verb)) continue;
      for (const [, after, before] of text.matchAll(/\b(?:breaks|unsettles|fixes|fails|flake) ([^/@\s,:]+)|([^/@\s,:]+)\S* (?:flakes|infra|skips|absent|passes|guilty)\b/g)) this.#tests.add(after ?? before);
    }
    this.#tests.delete('all');
  }

  // ---- before it begins ----

  #declared(verb) {
    return this.story.statements.filter((one) => one.verb === verb).map(({ text, line }) => this.#at(line, () => new Words(text)));
  }

  #accelerators() {
    const declared = this.#declared('accelerator').map((words) => {
      const accelerator = { name: words.next('a name'), kind: 'webhook', reruns: 'tests', trust: 'anyone', behaviour: 'honest', isDocumenting: false, isTracing: false };
      while (!words.isDone) {
        const word = words.next();
        if (word === 'via') accelerator.kind = words.next('a kind of runner');
        else if (word === 'reruns') accelerator.reruns = words.next('what it runs again');
        else if (word === 'trusts') accelerator.trust = words.next('whom it trusts');
        else if (word === 'documents') accelerator.isDocumenting = true; // its reports name the built commit
        else if (word === 'traces') accelerator.isTracing = true; // its messages are the first line, and the rest is the trace
        else throw new Error(`unexpected ${word}`);
      }
      return accelerator;
    });
    if (declared.length > 0) return declared;
    return [{ name: 'chip', kind: 'webhook', reruns: 'tests', trust: 'anyone', behaviour: 'honest', isDocumenting: false, isTracing: false }];
  }

  get #branches() { return ['main', ...this.#declared('branch').map((words) => words.until()).filter((words) => !words.includes('unwatched')).map(([name]) => name)]; }

  #files() {
    return this.accelerators.map(({ name, kind, reruns, trust }) => ({
      name, title: `Chip ${name}`, level: 'L4', trust, oncall: ['alice'],
      runners: [{
        name: 'lab', ...(kind === 'github' ? { github: { repository: `vendors/${name}` } } : { webhook: { url: this.vendorUrl(this, name), secret: 'hook' } }),
        ...(this.isExperimenting && { reruns }),
      }],
      triggers: { pull_request: {}, push: { branches: this.#branches } },
      deadlines: { ...(kind !== 'github' && { acknowledge: '1h' }), start: '14h', finish: `${FINISH / HOUR}h` },
    }));
  }

  // ---- the play ----

  #at(line, act) {
    try {
      return act();
    } catch (error) {
      throw new Error(`${this.story.file}:${line}: ${error.message}`, { cause: error });
    }
  }

  async run() {
    this.clock.advanceTo(START);
    this.outpost = await Outpost.start({
      program: process.env.OUTPOSTD_RELEASE, // the sanitizers would take minutes
      rig: this.github, issuer: this.issuer, accelerators: this.#files(), clock: this.clock, logFile: this.clock.logFile,
      secrets: Object.fromEntries(this.accelerators.map(({ name }) => [name, { hook: 'hook' }])),
      config: { upstream: { branches: this.#branches }, log: { level: 'warn' }, comment: { min_interval: '1s' }, reconcile: { interval: '1d' } },
    });
    this.daemon = new Connection({ url: this.outpost.url, secret: this.github.secret, sent: { webhooks: 0, reads: 0 } });
    try {
      await this.#land('root', { branch: 'main' });
      const others = [...this.#tests].filter((name) => name !== 'steady').map((name) => ({ name, what: 'absent' }));
      for (const accelerator of this.accelerators) await this.#report({ name: 'root', accelerator, notes: others });
      for (const { verb, line, text } of this.story.statements) await this.#perform(verb, line, text);
      await this.#wait(FINISH + 5 * HOUR); // after this time no answer arrives
      this.#judge();
    } finally {
      this.daemon.close();
      await this.outpost.close();
    }
    return this;
  }

  async #perform(verb, line, text) {
    const statement = STATEMENTS[verb];
    if (!statement) throw new Error(`${this.story.file}:${line}: no statement is called ${verb}`);
    const words = new Words(text);
    this.line = line;
    try {
      await statement.call(this, words);
      words.end();
      await this.#settle();
    } catch (error) {
      throw new Error(`${this.story.file}:${line}: ${error.message}`, { cause: error });
    }
  }

  // Changes with each event that may give the daemon work.
  get #happened() { return `${this.daemon.writes} ${this.github.requests} ${this.clock.moves} ${this.#commands} ${this.#asked.length}`; }

  // Until the daemon is idle and the vendors have answered its experiments. Looks only if something happened since the last time,
  // because many statements send nothing to the daemon.
  async #settle() {
    while (this.#settled !== this.#happened) {
      await settle(this, 2, { step: SECOND });
      this.#settled = this.#happened;
      await this.#look();
      const ready = this.#asked.splice(0);
      if (ready.length === 0) return;
      for (const one of ready) await this.#answer(one);
    }
  }

  async #wait(ms) {
    const end = this.clock.now() + ms;
    while (this.clock.now() < end) {
      this.daemon.close();
      this.clock.advanceTo(Math.min(end, this.clock.now() + 5 * HOUR));
      await this.#settle();
    }
  }

  // ---- main and the pull requests ----

  async #land(name, { branch, author = `dev-${name}`, login = author, files = [`src/${name}.cpp`], broken = [], message = `${name}\n\nmore` }) {
    const parent = this.#tips.get(branch);
    const commit = { name, sha: sha1(`${this.story.name} ${name}`), branch, parent, broken, files, at: this.clock.now(), own: broken.filter((one) => !parent?.broken.includes(one)) };
    this.#commits.set(name, commit);
    this.#tips.set(branch, commit);
    const payload = pushPayload({ branch, before: parent?.sha ?? '0'.repeat(40), after: commit.sha });
    payload.commits = [{ ...payload.commits[0], id: commit.sha, message, timestamp: seconds(commit.at), added: [], removed: [], modified: files,
      author: { name: author, email: 'a@example.com', ...(login && { username: login }) }, committer: { name: 'GitHub', username: 'web-flow', email: 'noreply@github.com' } }];
    payload.head_commit = payload.commits[0];
    payload.repository.pushed_at = Math.floor(commit.at / 1000);
    await this.daemon.deliver('push', payload);
    this.clock.advance(MINUTE);
    return commit;
  }

  #commit(name) {
    const found = this.#commits.get(name);
    if (!found) throw new Error(`no commit is called ${name}`);
    return found;
  }

  #pull(name) {
    const found = this.#pulls.get(name);
    if (!found) throw new Error(`no pull request is called ${name}`);
    return found;
  }

  #message(words) {
    const word = words.next('a message');
    if (word.startsWith('"')) return JSON.parse(word);
    if (!this.#messages.has(word)) throw new Error(`no message is called ${word}`);
    return this.#messages.get(word);
  }

  // t, t/job, t@accelerator, t/job@accelerator
  #spec(words) {
    const [, name, job, accelerator] = /^([^/@]+)(?:\/([^@]+))?(?:@(.+))?$/.exec(words.next('a test')) ?? [];
    if (!name) throw new Error('not a test');
    if (job && !this.#jobs.includes(job)) throw new Error(`no job is called ${job}`);
    if (accelerator && !this.accelerators.some((one) => one.name === accelerator)) throw new Error(`no accelerator is called ${accelerator}`);
    return { name, job, accelerator };
  }

  // breaks SPEC MESSAGE [as ERROR], fixes SPEC, reverts NAME, relands NAME, unsettles SPEC MESSAGE; before: the earlier breakages
  #changes(words, before) {
    let broken = [...before];
    while (CHANGES.includes(words.peek())) {
      const verb = words.next();
      if (verb === 'breaks' || verb === 'unsettles') {
        const spec = this.#spec(words), template = this.#message(words);
        broken.push({ ...spec, template, status: words.take('as') ? words.next('a status') : 'FAIL', isUnsettled: verb === 'unsettles' });
      } else if (verb === 'fixes') {
        const spec = this.#spec(words);
        if (!broken.some((one) => one.name === spec.name)) throw new Error(`${spec.name} is not broken`);
        broken = broken.filter((one) => one.name !== spec.name || (spec.job && one.job !== spec.job));
      } else {
        const name = words.next('a commit or pull request');
        const own = this.#pulls.get(name)?.own ?? this.#commit(name).own ?? [];
        broken = verb === 'reverts' ? broken.filter((one) => !own.includes(one)) : [...broken, ...own];
      }
    }
    return broken;
  }

  #payload(action, pull, more = {}) {
    const payload = pullRequest(action, {
      number: pull.number, headSha: pull.head.sha, baseSha: this.#tips.get(pull.to).sha, baseRef: pull.to, author: pull.author, title: pull.title ?? `Change ${pull.name}`,
      association: pull.association, updatedAt: seconds(this.clock.now()), createdAt: seconds(pull.at), ...more,
    });
    if (pull.isUnlinked) payload.pull_request.user = null; // the account is gone
    return payload;
  }

  #newHead(pull) {
    pull.head = { sha: sha1(`${this.story.name} ${pull.name} ${pull.heads.length}`), base: pull.base, own: pull.own, fixed: pull.fixed, pull };
    pull.heads.push(pull.head);
  }

  // ---- GitHub's answers ----

  mergeBase(from, sha) {
    const commit = [...this.#commits.values()].find((one) => one.sha === sha);
    const head = [...this.#pulls.values()].flatMap(({ heads }) => heads).find((one) => one.sha === sha);
    let base = commit ?? head?.base;
    const held = new Set();
    for (let at = this.#tips.get(from) ?? [...this.#commits.values()].find((one) => one.sha === from); at; at = at.parent) held.add(at);
    while (held.size > 0 && base && !held.has(base)) base = base.parent;
    return base ? { sha: base.sha, ms: base.at } : null;
  }

  filesOf(number) { return [...this.#pulls.values()].find((one) => one.number === number)?.files; }
  filesAt(sha) { return [...this.#commits.values()].find((one) => one.sha === sha)?.files; }
  tip(branch) { return this.#tips.get(branch)?.sha; }
  openPulls() { return [...this.#pulls.values()].filter(({ isOpen }) => isOpen).map((pull) => this.#payload('opened', pull).pull_request); }

  // ---- results of tests ----

  // The result of this test in this job. target: a commit or a head
  #result({ test, job, accelerator, target, notes }) {
    const fits = (one) => one.name === test && (!one.job || one.job === job) && (!one.accelerator || one.accelerator === accelerator);
    const note = notes.find((one) => (one.name === 'all' || one.name === test) && (!one.job || one.job === job));
    const message = (template) => fill(template, this.dice, test);
    if (note?.what === 'absent') return undefined;
    if (note?.what === 'skips') return { status: 'SKIP' };
    if (note?.what === 'passes') return { status: 'PASS' };
    if (note?.what === 'guilty') return { status: note.status, message: message(note.template), truth: 'guilty' };
    const machine = (this.#machines.get(accelerator) ?? []).find((one) => one.name === 'all' || fits(one));
    if (note?.what === 'infra' || machine) {
      const { template, status } = note?.what === 'infra' ? note : machine;
      return { status, message: message(template), truth: 'infra' };
    }
    const own = target.base && target.own.find((one) => fits(one) && !one.isUnsettled);
    const inherited = (target.base ?? target).broken.find((one) => fits(one) && !one.isUnsettled && !target.fixed?.includes(one));
    if (own && inherited && own.template === inherited.template) return { status: own.status, message: message(own.template), truth: 'both' };
    if (own) return { status: own.status, message: message(own.template), truth: 'guilty' };
    if (inherited) return { status: inherited.status, message: message(inherited.template), truth: 'base' };
    if (note?.what === 'flakes') {
      const unsettled = target.base && target.own.find((one) => fits(one) && one.isUnsettled);
      return { status: 'FAIL', message: message(note.template ?? unsettled?.template ?? ''), truth: unsettled ? 'unsettled' : 'flaky' };
    }
    return { status: 'PASS' };
  }

  // "t flakes MESSAGE, u skips, all infra MESSAGE as MISS": the outcome of only this run
  #notes(words) {
    const notes = [];
    while (!words.isDone) {
      const spec = this.#spec(words), what = words.next('what it does');
      const note = { ...spec, what };
      if (what === 'infra') Object.assign(note, { template: this.#message(words), status: words.take('as') ? words.next('a status') : 'ERROR' });
      else if (what === 'flakes') note.template = words.isDone || words.peek() === ',' ? undefined : this.#message(words);
      else if (what === 'guilty') Object.assign(note, { template: this.#message(words), status: words.take('as') ? words.next('a status') : 'FAIL' });
      else if (!['skips', 'absent', 'passes'].includes(what)) throw new Error(`a test does not ${what}`);
      notes.push(note);
      if (!words.isDone && !words.take(',')) throw new Error(`a comma is missing before ${words.peek()}`);
    }
    return notes;
  }

  #real(name) { return this.#called.get(name) ?? name; }
  // Finds a name that a comment may have cut; undefined if several match.
  #alias(name) {
    const [start, isCut] = name.endsWith('…') ? [name.slice(0, -1), true] : [name, false];
    const found = [...this.#called].filter(([, real]) => (isCut ? real.startsWith(start) : real === name));
    return found.length > 1 ? undefined : found[0]?.[0] ?? name;
  }

  #runJobs({ accelerator, target, notes, only }) {
    const tests = [...this.#tests];
    return this.#jobs.map((job) => ({
      job, results: tests.filter((test) => (this.#jobsOf.get(test) ?? this.#jobs).includes(job) && (!only || only.includes(`unit/${this.#real(test)}`)))
        .map((test) => ({ test, ...this.#result({ test, job, accelerator: accelerator.name, target, notes }) })).filter(({ status }) => status),
    })).filter(({ results }) => results.length > 0 || !only);
  }

  async #send({ accelerator, dispatch, job, attempt, results, commit, environment, run = `run-${dispatch.outpost.dispatch_id}` }) {
    const tests = results.map(({ test, status, message }) => ({ suite: 'unit', name: this.#real(test), status,
      ...(accelerator.isTracing && message !== undefined ? { message: message.split('\n')[0], trace: message } : { message }) }));
    const isRed = results.length === 0 || results.some(({ status }) => ['FAIL', 'ERROR', 'MISS'].includes(status));
    const workflow = { status: 'completed', conclusion: isRed ? 'failure' : 'success', name: 'ci', job_name: this.#real(job), run_id: run, run_attempt: attempt, url: `https://ci.example/${accelerator.name}/${run}`,
      ...(!accelerator.isDocumenting && tests.length > 0 && { tests }) };
    const { outpost, delivery_id: delivery, event_type: event } = dispatch;
    const isGithub = accelerator.kind === 'github';
    const token = isGithub ? await this.#githubToken(accelerator) : outpost.callback_token;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await this.daemon.send('POST', isGithub ? '/github/callback' : `/api/v1/dispatches/${outpost.dispatch_id}/jobs`, {
      body: JSON.stringify(isGithub ? { event_type: event, delivery_id: delivery, payload: {}, outpost: { dispatch_id: outpost.dispatch_id }, workflow } : workflow), headers });
    if (answer.status !== 200) throw new Error(`the report of ${accelerator.name} is answered ${answer.status}: ${answer.text}`);
    if (!accelerator.isDocumenting || tests.length === 0) return;
    const report = { schema: 1, environment: { accelerator: accelerator.name, device: `${accelerator.name}-9000`, os: 'Ubuntu 24.04', torch: '2.10.0a0', torch_commit: commit, ...environment }, tests };
    const put = await this.daemon.send('PUT', `/api/v1/jobs/${JSON.parse(answer.text).job}/report`, { body: JSON.stringify(report), headers });
    if (put.status !== 200) throw new Error(`the document of ${accelerator.name} is answered ${put.status}: ${put.text}`);
  }

  #githubToken(accelerator) {
    const now = Math.floor(this.clock.now() / 1000);
    return this.issuer.mint({ ...githubClaims(`vendors/${accelerator.name}`), aud: AUDIENCE, iat: now, nbf: now - 5, exp: now + 86_400 });
  }

  // ---- vendors ----

  // name: the accelerator whose vendor received it; undefined: all that it lists
  dispatched(body, name) {
    const { outpost, payload } = body;
    if (payload.action === 'closed') return;
    for (const accelerator of this.accelerators.filter((one) => (name ? one.name === name : outpost.accelerators.includes(one.name)))) {
      if (outpost.experiment) this.#asked.push({ accelerator, dispatch: body });
      else this.#dispatches.set(`${payload.pull_request?.head.sha ?? payload.after} ${accelerator.name}`, body);
    }
  }

  #target(sha) {
    for (const commit of this.#commits.values()) if (commit.sha === sha) return commit;
    for (const { heads } of this.#pulls.values()) for (const head of heads) if (head.sha === sha) return head;
    throw new Error(`an experiment at ${sha}, which is no commit`);
  }

  async #answer({ accelerator, dispatch }) {
    const { of, side, sha, tests, jobs: required } = dispatch.outpost.experiment;
    const explained = [...this.#dispatches.entries()].find(([, { outpost }]) => outpost.dispatch_id === of);
    if (!explained) throw new Error(`an experiment explains ${of}, which is no dispatch`);
    const { pull } = this.#target(explained[0].split(' ')[0]);
    let target = this.#target(sha);
    if (pull && target !== (side === 'head' ? pull.head : pull.head.base) && !pull.heads.some((head) => target === (side === 'head' ? head : head.base)))
      this.problems.push(`${pull.name}: the experiment on the ${side} is at ${target.name ?? target.pull.name}`);
    if (dispatch.payload.head_sha !== sha) this.problems.push(`the experiment's payload names ${dispatch.payload.head_sha}, not ${sha}`);
    this.experiments.push({ pull: pull?.name, side, accelerator: accelerator.name, tests });
    const { behaviour } = accelerator;
    if (behaviour === 'silent') return;
    if (behaviour === 'late') await this.#passTime(FINISH + HOUR);
    if (behaviour === 'base-for-head' && side === 'head') target = target.base;
    if (behaviour === 'head-for-base' && side === 'base') target = pull.head;
    const { notes, environment } = this.#outcomes.get(`${side} ${pull?.name}`)?.shift() ?? { notes: [], environment: accelerator.environment };
    const isWhole = behaviour === 'ignores-list' || accelerator.reruns === 'whole';
    const jobs = this.#runJobs({ accelerator, target, notes, only: isWhole ? undefined : tests }).filter(({ job }) => isWhole || !required?.length || required.includes(job));
    if (behaviour === 'other-tests') for (const job of jobs) job.results = [{ test: 'steady', status: 'PASS' }];
    if (behaviour === 'all-skipped') for (const job of jobs) for (const result of job.results) Object.assign(result, { status: 'SKIP', message: undefined });
    if (jobs.length === 0) jobs.push({ job: this.#jobs[0], results: [] }); // no listed test exists
    const run = behaviour === 'one-run-for-both' ? `run-of-${of}` : undefined;
    for (let n = behaviour === 'twice' ? 2 : 1; n > 0; n--)
      for (const { job, results } of jobs) await this.#send({ accelerator, dispatch, job, attempt: 1, results, commit: target.sha, environment, run });
  }

  async #passTime(ms) {
    this.daemon.close();
    this.clock.advance(ms);
    await settle(this, 2, { step: SECOND });
  }

  // A commit, a pull request's head, or an older head of it: A.1
  #tested(name) {
    const [, pull, nth] = /^(.+)\.(\d+)$/.exec(name) ?? [];
    return this.#pulls.get(name)?.head ?? this.#pulls.get(pull)?.heads[nth - 1] ?? this.#commit(name);
  }

  async #report({ name, accelerator, notes, jobs, built, environment = accelerator.environment }) {
    const target = this.#tested(name);
    let dispatch;
    for (let looks = 0; !(dispatch = this.#dispatches.get(`${target.sha} ${accelerator.name}`)) && looks < LOOKS_MAX; looks++) await settle(this, 2, { step: SECOND });
    if (!dispatch) throw new Error(`${accelerator.name} was not sent ${name}`);
    const attempt = (this.#attempts.get(dispatch.outpost.dispatch_id) ?? 0) + 1;
    this.#attempts.set(dispatch.outpost.dispatch_id, attempt);
    for (const { job, results } of this.#runJobs({ accelerator, target, notes })) {
      if (jobs && !jobs.includes(job)) continue;
      for (const { test, truth } of results) this.#truth.set(`${target.sha} ${accelerator.name} unit/${test} ${job}`, truth);
      await this.#send({ accelerator, dispatch, job, attempt, results, commit: (built ? this.#tested(built) : target).sha, environment });
    }
  }

  // ---- effects of the statements ----

  jobsAre(names) { this.#jobs = names; }

  testRunsIn(name, jobs) {
    for (const job of jobs) if (!this.#jobs.includes(job)) throw new Error(`no job is called ${job}`);
    this.#tests.add(name);
    this.#jobsOf.set(name, jobs);
  }

  messageIs(name, text) { this.#messages.set(name, text); }

  nameIs(name, real) { this.#called.set(name, real); }

  branchAt(name, commit) { this.#tips.set(name, this.#commit(commit)); }

  commitLands(name, branch, words) {
    const number = words.take('pr') ? words.number('a pull request') : undefined;
    const { author, login = author } = authorOf(words, name);
    const title = words.take('titled') ? JSON.parse(words.next('a title')) : name;
    const message = number ? `${title} (#${number})\n\nmore\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/${number}` : `${title}\n\nmore`;
    const files = filesOf(words, name), parent = this.#tips.get(branch);
    if (!parent) throw new Error(`no branch is called ${branch}`);
    return this.#land(name, { branch, author, login, files, message, broken: this.#changes(words, parent.broken) });
  }

  async historyPasses(words) {
    const n = words.number('how many');
    const branch = words.take('on') ? words.next('a branch') : 'main';
    const flakes = new Map();
    if (words.take(':')) {
      do {
        const k = words.number('which one');
        flakes.set(k, [...(flakes.get(k) ?? []), { ...this.#spec(words), what: words.next('flakes'), template: this.#message(words) }]);
      } while (words.take(','));
    }
    const names = [];
    for (let k = 1; k <= n; k++) {
      names.push(`history-${this.#commits.size}`);
      await this.#land(names.at(-1), { branch, broken: this.#tips.get(branch).broken });
      await settle(this, 1, { step: SECOND }); // settle each hour, because otherwise vendors would seem not to answer
      this.clock.advance(30 * MINUTE);
    }
    for (const accelerator of this.accelerators)
      for (const [i, name] of names.entries()) await this.#report({ name, accelerator, notes: flakes.get(i + 1) ?? [] });
  }

  async othersFlake(words) {
    const n = words.number('how many');
    const isGreen = words.take('pass');
    if (!isGreen && !words.take('flake')) throw new Error('flake or pass is missing');
    const note = isGreen ? undefined : { ...this.#spec(words), what: 'flakes', template: this.#message(words) };
    const isPassing = words.take('and') && words.next('pass') === 'pass';
    for (let i = 0; i < n; i++) {
      const name = `other-${this.#pulls.size}`;
      await this.#open(name, { author: `dev-${name}`, files: [`src/${name}.cpp`], base: this.#tips.get('main'), to: 'main', association: 'CONTRIBUTOR', own: [], fixed: [] });
      await this.#settle();
      for (const accelerator of this.accelerators) {
        await this.#report({ name, accelerator, notes: note ? [note] : [] });
        await this.#settle();
        if (isPassing) await this.#report({ name, accelerator, notes: [] });
      }
    }
  }

  async #open(name, fields) {
    if (this.#pulls.has(name) || this.#commits.has(name)) throw new Error(`${name} is there already`);
    const number = Number(/^p(\d{3,})$/.exec(name)?.[1] ?? this.#nextNumber++);
    const pull = { name, number, at: this.clock.now(), heads: [], isOpen: true, ...fields };
    this.#pulls.set(name, pull);
    this.#newHead(pull);
    await this.daemon.deliver('pull_request', this.#payload('opened', pull));
    this.clock.advance(MINUTE);
  }

  // [by AUTHOR | unlinked PERSON] [titled "TEXT"] [on COMMIT] [to BRANCH] [stacked on PULL [alone]] [touches FILE…] [stranger] [CHANGE…]
  pullOpens(words) {
    const name = words.next('a name');
    const { author, login } = authorOf(words, name);
    const title = words.take('titled') ? JSON.parse(words.next('a title')) : undefined;
    let to = 'main', parent, isAlone = false, base, association = 'CONTRIBUTOR', files = [`src/${name}.cpp`];
    for (;;) {
      if (words.take('on')) base = this.#commit(words.next('a commit'));
      else if (words.take('to')) to = words.next('a branch');
      else if (words.take('stranger')) association = 'NONE';
      else if (words.take('stacked')) {
        parent = words.take('on') && this.#pull(words.next('a pull request'));
        isAlone = Boolean(words.take('alone')); // its list of files has only its own files
      }
      else if (words.peek() === 'touches') files = filesOf(words, name);
      else break;
    }
    const inherited = parent?.own ?? [];
    base ??= parent?.base ?? this.#tips.get(to);
    const own = this.#changesOf(words, inherited, base);
    return this.#open(name, { author, isUnlinked: login === null, title, files: [...files, ...(isAlone ? [] : parent?.files ?? [])], base, to, association, ...own });
  }

  // The breakages of a pull request, and the breakages of its base that it fixes.
  #changesOf(words, before, base, fixedBefore = []) {
    const after = this.#changes(words, [...before, ...base.broken.filter((one) => !before.includes(one) && !fixedBefore.includes(one))]);
    return { own: after.filter((one) => before.includes(one) || !base.broken.includes(one)), fixed: base.broken.filter((one) => !after.includes(one)) };
  }

  // PULL [on COMMIT] [touches FILE…] [CHANGE…]: a new head; PULL back N: the N-th one again
  async pullIsUpdated(words) {
    const pull = this.#pull(words.next('a pull request'));
    const before = pull.head.sha;
    if (words.take('back')) {
      pull.head = pull.heads[words.number('which head') - 1];
      Object.assign(pull, { base: pull.head.base, own: pull.head.own, fixed: pull.head.fixed });
    } else this.#changePull(pull, words);
    await this.daemon.deliver('pull_request', this.#payload('synchronize', pull, { before }));
    this.clock.advance(MINUTE);
  }

  // [on COMMIT] [touches FILE…] [CHANGE…]
  #changePull(pull, words) {
    if (words.take('on')) pull.base = this.#commit(words.next('a commit'));
    if (words.peek() === 'touches') pull.files = filesOf(words, pull.name);
    Object.assign(pull, this.#changesOf(words, pull.own, pull.base, pull.fixed));
    this.#newHead(pull);
  }

  async pullReopens(words) {
    const pull = this.#pull(words.next('a pull request'));
    if (!words.isDone) this.#changePull(pull, words);
    pull.isOpen = true;
    await this.daemon.deliver('pull_request', this.#payload('reopened', pull));
    this.clock.advance(MINUTE);
  }

  async pullCloses(name, commit, words) {
    const pull = this.#pull(name);
    pull.isOpen = false;
    const isByBot = Boolean(words?.take('by') && words.next('bot')); // a bot pushed the commit and closed the pull request
    await this.daemon.deliver('pull_request', this.#payload('closed', pull, { merged: Boolean(commit) && !isByBot }));
    if (!commit) return;
    const { broken } = this.#tips.get(pull.to);
    const before = [...broken.filter((one) => !pull.fixed.includes(one) && !pull.own.includes(one)), ...pull.own], after = this.#changes(words, before);
    const landed = await this.#land(commit, { branch: pull.to, author: pull.author, files: pull.files, broken: after, message: `Change ${pull.name} (#${pull.number})\n\nmore\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/${pull.number}` });
    landed.own = after.filter((one) => pull.own.includes(one) || !broken.includes(one));
  }

  async issueIs(words) {
    const name = words.next('a name');
    const ctl = async (...args) => {
      this.#commands++;
      const { code, stdout, stderr } = await this.outpost.ctl('--json', 'known', ...args);
      if (code !== 0) throw new Error(stderr);
      return stdout;
    };
    this.issues ??= [];
    if (words.take('ends')) return ctl('remove', String(this.issues.indexOf(name) + 1));
    this.issues.push(name);
    return ctl('add', '--test', JSON.parse(words.next('a pattern')), '--url', `https://github.com/pytorch/pytorch/issues/${this.issues.length}`);
  }

  async runs(words) {
    const names = words.until('in', 'on', 'with', 'built', ':');
    const jobs = words.take('in') ? words.until('on', 'with', 'built', ':') : undefined;
    const on = words.take('on') ? words.until('with', 'built', ':') : undefined;
    const environment = words.take('with') ? environmentOf(words) : undefined;
    const built = words.take('built') ? words.next('a commit') : undefined;
    const notes = words.take(':') ? this.#notes(words) : [];
    for (const one of on ?? []) if (!this.accelerators.some(({ name }) => name === one)) throw new Error(`no accelerator is called ${one}`);
    for (const name of names) {
      for (const accelerator of this.accelerators) {
        if (on && !on.includes(accelerator.name)) continue;
        await this.#report({ name, accelerator, notes, jobs, built, environment });
        await this.#settle();
      }
    }
  }

  outcomeIs(words) {
    const side = words.next('a side');
    if (!['head', 'base'].includes(side) || !words.take('of')) throw new Error('head of PULL or base of PULL is missing');
    const key = `${side} ${this.#pull(words.next('a pull request')).name}`;
    const environment = words.take('with') ? environmentOf(words) : undefined;
    if (!words.take(':')) throw new Error(': is missing');
    this.#outcomes.set(key, [...(this.#outcomes.get(key) ?? []), { environment, notes: this.#notes(words) }]);
  }

  #named(words) {
    const found = this.accelerators.find(({ name }) => name === words.peek());
    if (found) words.next();
    return found ?? this.accelerators[0];
  }

  machineIs(words) {
    const { name } = this.#named(words);
    if (words.take('recovers')) this.#machines.delete(name);
    else if (words.take('fails')) {
      const spec = this.#spec(words), template = this.#message(words);
      this.#machines.set(name, [...(this.#machines.get(name) ?? []), { ...spec, template, status: words.take('as') ? words.next('a status') : 'ERROR' }]);
    } else throw new Error('a machine fails or recovers');
  }

  vendorIs(words) {
    const accelerator = this.#named(words);
    if (words.take('with')) {
      accelerator.environment = environmentOf(words);
      return;
    }
    const behaviour = words.next('what it does');
    if (!BEHAVIOURS.includes(behaviour)) throw new Error(`no vendor is ${behaviour}`);
    accelerator.behaviour = behaviour;
  }

  async memberSays(name, body) {
    await this.daemon.deliver('issue_comment', issueComment('created', { number: this.#pull(name).number, body, author: 'maya', association: 'MEMBER', createdAt: seconds(this.clock.now()) }));
    this.clock.advance(MINUTE);
  }

  // D2 08:00: moves to this time of that day. The story begins a day before D1, or before its first negative day.
  timeIs(day, ...clock) {
    const days = this.#declared('at').map((words) => Number(words.next('a day').slice(1)));
    const first = Math.min(1, ...days);
    const [hours, minutes] = clock.filter((word) => word !== ':').map(Number);
    const at = START - (START % (24 * HOUR)) + (Number(day.slice(1)) - first + 1) * 24 * HOUR + hours * HOUR + minutes * MINUTE;
    if (!(at >= 0)) throw new Error(`not a time: ${day} ${clock.join('')}`);
    return this.#wait(Math.max(0, at - this.clock.now()));
  }

  timePasses(text) {
    const [, n, unit] = /^(\d+)([mhd])$/.exec(text) ?? [];
    if (!unit) throw new Error(`not a time: ${text}`);
    return this.#wait(Number(n) * UNITS[unit]);
  }

  isExpected(words, isNow) {
    const { line } = this;
    const isOfOther = (words.take('with') && !this.isExperimenting) || (words.take('without') && this.isExperimenting);
    if (/^\d+$/.test(words.peek() ?? '')) {
      const required = words.number('how many');
      if (!words.take('experiments') || !words.take('of')) throw new Error('experiments of PULL is missing');
      const pull = this.#pull(words.next('a pull request'));
      if (!isOfOther) (this.limits ??= []).push({ pull, required, line });
      return;
    }
    const pull = this.#pull(words.next('a pull request')), { name: test, accelerator } = this.#spec(words);
    const required = words.until();
    if (required.length === 0 || required.some((one) => ![...VERDICTS, 'SHOWN'].includes(one))) throw new Error(`one or more of ${VERDICTS.join(', ')} must follow`);
    const expected = { pull, accelerator: accelerator ?? this.accelerators[0].name, test, required, line };
    if (isOfOther) return;
    if (isNow) this.#compare(expected);
    else (this.expected ??= []).push(expected);
  }

  // ---- Outpost's verdicts ----

  // If a test is red in several jobs, the first of these truths counts.
  #truthOf(sha, accelerator, test) {
    const truths = this.#jobs.map((job) => this.#truth.get(`${sha} ${accelerator} ${test} ${job}`));
    return WORST.find((truth) => truths.includes(truth));
  }

  #excused(where, pull, accelerator, test, verdict, truth, reason) {
    const isWrong = (truth === 'guilty' && EXCUSES.includes(verdict)) || (truth === 'unsettled' && ['KNOWN', 'BASE'].includes(verdict)) || (truth === 'infra' && verdict === 'NEW');
    if (!isWrong) return;
    const text = `${pull.name} ${accelerator} ${test} is ${truth}, and ${where} says ${verdict}${reason ? ` (${reason})` : ''}`;
    if (this.excuses.has(text)) return;
    this.excuses.add(text);
    this.problems.push(`${text} [${this.story.file}:${this.line}]`);
  }

  // Checks a new version of a comment.
  commented(number, body) {
    const pull = [...this.#pulls.values()].find((one) => one.number === Number(number));
    const sha = commitOf(body);
    if (!pull || !sha) return;
    for (const { test: shown, accelerator: title, verdict } of wordsIn(body)) {
      const name = title.replace(/^Chip /, ''), test = shown.replace(/^unit\/(.*)$/, (whole, real) => `unit/${this.#alias(real)}`);
      this.#excused('a comment', pull, name, test, verdict, this.#truthOf(sha, name, test));
    }
  }

  async #look() {
    for (const pull of this.#pulls.values()) {
      if (!pull.isOpen) continue;
      const view = await this.daemon.get(`/api/v1/pulls/${pull.number}`);
      for (const { accelerator, suite, test, attribution, reason, status } of view.verdicts) {
        const name = `${suite}/${this.#alias(test)}`;
        const truth = this.#truthOf(view.head_sha, accelerator, name);
        if (suite === 'unit' && !attribution && truth) this.problems.push(`${pull.name} ${accelerator} ${name} is ${truth}, and shown as ${status}`);
        this.#excused('the API', pull, accelerator, name, attribution, truth, reason);
        this.finals.set(`${pull.name} ${view.head_sha} ${accelerator} ${name}`, { pull, verdict: attribution, reason, truth, status });
      }
    }
  }

  #compare({ pull, accelerator, test, required, line }) {
    const cell = this.finals.get(`${pull.name} ${pull.head.sha} ${accelerator} unit/${test}`);
    if (required.includes('SHOWN') ? !cell : !required.includes(cell?.verdict)) this.problems.push(`${this.story.file}:${line}: ${pull.name} ${test} must be ${required.join(' or ')}, and is ${cell ? `${cell.verdict} (${cell.reason})` : 'not shown'}`);
  }

  #judge() {
    for (const one of this.expected ?? []) this.#compare(one);
    for (const { pull, required, line } of this.limits ?? []) {
      const n = this.experiments.filter((one) => one.pull === pull.name).length;
      if (n !== required) this.problems.push(`${this.story.file}:${line}: ${required} experiments of ${pull.name} are expected, and ${n} were requested`);
    }
  }
}

// ---- the statements ----

const authorOf = (words, name) => {
  if (words.take('by')) return { author: words.next('an author') };
  if (words.take('unlinked')) return { author: words.next('an author'), login: null }; // the commit names a person without an account
  return { author: `dev-${name}` };
};
// VERSION of the vendor's extension, and the device
const environmentOf = (words) => {
  const version = words.next('a version'), device = words.peek()?.startsWith('"') ? JSON.parse(words.next()) : undefined;
  return { extension: { name: 'extension', version }, ...(device && { device }) };
};
const filesOf = (words, name) => (words.take('touches') ? words.until(...CHANGES, 'stranger', 'stacked', 'to', 'on', ':') : [`src/${name}.cpp`]);

const STATEMENTS = {
  // Read before the daemon starts.
  accelerator(words) { words.until(); },

  jobs(words) { this.jobsAre(words.until()); },

  // test NAME in JOB…: runs in these jobs alone
  test(words) {
    const name = words.next('a test');
    if (!words.take('in')) throw new Error('in is missing');
    this.testRunsIn(name, words.until());
  },

  message(words) { this.messageIs(words.next('a name'), JSON.parse(words.next('a text'))); },

  branch(words) {
    const name = words.next('a branch');
    if (!words.take('at')) throw new Error('at is missing');
    this.branchAt(name, words.next('a commit'));
    words.take('unwatched');
  },

  // call NAME "TEXT": the real name of a test or job
  call(words) { this.nameIs(words.next('a name'), JSON.parse(words.next('a text'))); },

  // commit NAME [on BRANCH] [pr NUMBER] [by AUTHOR | unlinked PERSON] [titled "TEXT"] [touches FILE…] [CHANGE…]
  commit(words) {
    const name = words.next('a name');
    const branch = words.take('on') ? words.next('a branch') : 'main';
    return this.commitLands(name, branch, words);
  },

  // commits NAME… [on BRANCH]: commits without an effect on tests
  async commits(words) {
    const names = words.until('on');
    const branch = words.take('on') ? words.next('a branch') : 'main';
    for (const name of names) await this.commitLands(name, branch, new Words(''));
  },

  // history N [on BRANCH] [: K SPEC flakes MESSAGE, …]: N tested commits; in the K-th the test fails with the message
  async history(words) { await this.historyPasses(words); },

  // others N flake SPEC MESSAGE [and pass], others N pass: N other pull requests on the tip, which fail with the message once, or pass
  async others(words) { await this.othersFlake(words); },

  pull(words) { return this.pullOpens(words); },
  update(words) { return this.pullIsUpdated(words); },
  reopen(words) { return this.pullReopens(words); },
  async merge(words) {
    const pull = words.next('a pull request');
    if (!words.take('as')) throw new Error('as is missing');
    await this.pullCloses(pull, words.next('a name'), words);
  },
  close(words) { return this.pullCloses(words.next('a pull request')); },

  // run NAME… [in JOB…] [on ACCELERATOR…] [with VERSION ["DEVICE"]] [built NAME] [: NOTE, …]: its vendor reports; a repetition is its next attempt
  run(words) { return this.runs(words); },

  // outcome head|base of PULL: NOTE, …: the outcome of its next experiment on that side
  outcome(words) { this.outcomeIs(words); },

  // machine [ACCELERATOR] fails SPEC MESSAGE [as STATUS] | recovers
  machine(words) { this.machineIs(words); },

  // vendor [ACCELERATOR] BEHAVIOUR
  vendor(words) { this.vendorIs(words); },

  // member PULL "TEXT": a member comments
  member(words) { return this.memberSays(words.next('a pull request'), JSON.parse(words.next('a text'))); },

  // known NAME "PATTERN": a member registers an issue; known NAME ends
  known(words) { return this.issueIs(words); },

  at(words) { return this.timeIs(...words.until()); },
  wait(words) { return this.timePasses(words.next('a time')); },

  // expect [with | without] PULL SPEC VERDICT…; expect [with | without] N experiments of PULL
  expect(words) { this.isExpected(words, false); },
  // like `expect`, at once
  now(words) { this.isExpected(words, true); },
};
