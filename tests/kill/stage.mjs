// Plays a story (story.mjs) to a daemon, or to several on one database, with a fake GitHub and vendors, with trouble and kills or
// undisturbed, and records the events for judge.mjs.
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startIssuer } from '../github/oidc.mjs';
import { issueComment, pullRequest, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor, startSilentVendor, startWebhookVendor } from '../github/vendors.mjs';
import { Outpost, until } from '../integration/lib/outpost.mjs';
import { BASE } from './story.mjs';

export const UPSTREAM = 'pytorch/pytorch';
export const ASCEND = 'Ascend/pytorch';
export const SPYRE = 'torch-spyre/torch-spyre';
export const INFRA = 'pytorch-fdn/accelerator-test-infra';
const SECRET = 'between Outpost and the labs';
const TRIES = 10_000; // a vendor retries a report until it is accepted
const PATIENCE_MS = 900_000; // ten successive failures with their back-off

// The runners and the events that they receive; where: the repository or the vendor's name in `vendors`.
export const RUNNERS = [
  { name: 'npu', where: ASCEND, pushes: true },
  { name: 'shared-chip', where: INFRA, pushes: true },
  { name: 'lab-chip', where: 'lab', pushes: true },
  { name: 'quiet-chip', where: 'silent', pushes: false },
  { name: 'spyre', where: SPYRE, pushes: false, isLabeled: true },
];

const accelerators = ({ lab, silent }) => {
  const common = { level: 'L2', vendor: 'A vendor', triggers: { pull_request: {}, push: { branches: ['main'] } } };
  const pullsOnly = { ...common, triggers: { pull_request: {} } };
  return [
    { name: 'npu', title: 'NPU', ...common, level: 'L4', oncall: ['alice'], runners: [{ name: 'ci', github: { repository: ASCEND } }] },
    { name: 'shared-chip', title: 'Shared Chip', ...common },
    { name: 'lab-chip', title: 'Lab Chip', ...common, level: 'L4', oncall: ['bob'], runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] },
    { name: 'quiet-chip', title: 'Quiet Chip', ...pullsOnly, runners: [{ name: 'lab', webhook: { url: silent.url, secret: 'hook' } }] },
    { name: 'spyre', title: 'Spyre', ...common, triggers: { pull_request: { label: 'required' } }, runners: [{ name: 'ci', github: { repository: SPYRE } }] },
  ];
};

// A head always has the same results. Half of the heads are green, because an accelerator that is red on nearly all is unhealthy or
// not by the order of their ends, which kills change.
function results(who, body) {
  const sha = body.payload.pull_request?.head.sha ?? body.payload.after;
  const mayBeRed = Number.parseInt(sha[8], 16) < 8;
  const tests = ['llama3', 'Qwen', 'resnet'].map((name, i) => {
    const isRed = mayBeRed && Number.parseInt(sha.slice(i, i + 2), 16) % 7 === who.length % 7;
    return { suite: 'model', name, status: isRed ? 'FAIL' : 'PASS', duration: 1.5, ...(isRed && { message: `${name} on ${who}: expected 1, got 2` }) };
  });
  const conclusion = tests.some(({ status }) => status === 'FAIL') ? 'failure' : 'success';
  return [{ workflow: 'ci', job: 'test', conclusion, tests, accelerator: who, skipStart: Number.parseInt(sha[5], 16) % 2 === 0 }];
}

// The heads that each vendor reports. Of a long line of pushes only some, because a daemon accepts 100 reports a minute from one repository.
export function reportedHeads({ kind, isFirst, finalHead, steps }) {
  if (kind === 'pull') return [finalHead];
  const heads = steps.map(({ head }) => head);
  return isFirst || heads.length < 100 ? heads : heads.filter((head) => Number.parseInt(head.slice(9, 11), 16) < 20);
}

export class Stage {
  arrivals = []; // {where, id, head, number, action, original, delivery}: each event that a vendor received
  accepted = new Map(); // GUID → the number of 202 and of duplicate answers
  problems = [];
  delivered = 0;
  vendors = {};
  #progress = new EventEmitter().setMaxListeners(0); // 'step': a webhook is accepted, or all lines are played
  #isPlayed = false;

  // prepare: makes the daemon, or an object with the same methods for several (cluster.mjs); more: further accelerators.
  static async open({ story, config, answer, more = [], prepare = (options) => Outpost.prepare(options) }) {
    const stage = new Stage();
    stage.story = story;
    const reporting = new Set(story.lines.flatMap((line) => reportedHeads(line)));
    // For some short-lived heads vendors report, to test late reports.
    const script = (who) => (body) => {
      const sha = body.payload.pull_request?.head.sha ?? body.payload.after;
      return reporting.has(sha) || (body.payload.pull_request && Number.parseInt(sha[7], 16) < 4) ? results(who, body) : [];
    };
    [stage.rig, stage.issuer] = await Promise.all([startRig(), startIssuer()]);
    const log = ({ what, message }) => { if (what === 'error' && !stage.isClosing) stage.problems.push(`a vendor failed: ${message}`); };
    const labs = { secret: SECRET, once: true, tries: TRIES, answer, log };
    [stage.vendors.lab, stage.vendors.silent] = await Promise.all([startWebhookVendor({ ...labs, script: script('lab-chip') }), startSilentVendor(labs)]);
    stage.outpost = await prepare({
      rig: stage.rig, issuer: stage.issuer, accelerators: [...accelerators(stage.vendors), ...more], wait: false,
      secrets: { 'lab-chip': { hook: SECRET }, 'quiet-chip': { hook: SECRET } },
      config: {
        infra: { repository: INFRA, trust: 'contributors' }, comment: { enabled: true, min_interval: '2s' },
        reconcile: { interval: '5s' }, ...config,
      },
    });
    const github = { rigUrl: stage.rig.url, tokenUrl: stage.issuer.tokenUrl, callbackUrl: `${stage.outpost.url}/github/callback`, once: true, tries: TRIES, log };
    for (const [name, repository] of [['npu', ASCEND], ['shared-chip', INFRA], ['spyre', SPYRE]])
      stage.vendors[name] = startDispatchVendor({ ...github, repository, script: script(name) });
    stage.#watch();
    for (const sha of BASE.slice(0, 3)) stage.rig.push(UPSTREAM, { sha });
    for (const line of story.lines.filter(({ kind }) => kind === 'pull'))
      stage.rig.openPull(UPSTREAM, { ...stage.#pullAt(line, line.steps[0]), files: ['aten/src/ATen/native/Add.cpp'] });
    return stage;
  }

  #watch() {
    this.outpost.on('exit', ({ code, signal }) => {
      if (signal !== 'SIGKILL' && !this.isClosing) this.problems.push(`the daemon died by itself (${signal ?? code}):\n${this.outpost.tail()}`);
    });
    const note = (where, { payload, delivery_id: delivery, outpost }, action) => this.arrivals.push({
      where, id: outpost.dispatch_id, head: payload.pull_request?.head.sha ?? payload.after, number: payload.number ?? null,
      action: action ?? payload.action ?? 'push', original: outpost.action, delivery,
    });
    this.rig.on('dispatch', ({ repository, client_payload: body }) => note(repository, body));
    for (const name of ['lab', 'silent']) {
      this.vendors[name].on('event', ({ valid, event, body }) => {
        if (!valid) this.problems.push(`${name} received an event with a wrong signature`);
        else if (body.payload) note(name, body, event === 'cancel' ? 'cancel' : undefined); // a notice has no change
      });
    }
  }

  async start() {
    await this.outpost.spawn();
  }

  async ready() {
    await until(async () => (await this.outpost.get('/readyz')).status === 200, { timeout: 20_000, interval: 5, what: '/readyz is 200' });
  }

  // The state of a pull request after a step.
  #pullAt(line, step) {
    return {
      number: line.number, headSha: step.head, labels: step.labels ?? [], updatedAt: step.at,
      association: line.isStranger ? 'NONE' : 'CONTRIBUTOR', author: `author-${line.number}`, title: `Change ${line.number}`,
    };
  }

  // GitHub's own state changes before its webhook is sent.
  #happen(line, step) {
    const { event, action } = step;
    if (event === 'push') this.rig.push(UPSTREAM, { sha: step.head });
    else if (event === 'issue_comment') step.commentId = this.rig.world.comment(UPSTREAM, line.number, { body: this.#commandBody(step), author: step.author });
    else this.rig.updatePull(UPSTREAM, line.number, {
      ...(action === 'synchronize' && { headSha: step.head }), labels: step.labels, updatedAt: step.at,
      state: action === 'closed' ? 'closed' : 'open',
    });
  }

  #commandBody(step) {
    return step.body.replace('BOT', this.rig.app.slug);
  }

  #payload(line, step) {
    if (step.event === 'push') return push({ after: step.head, before: step.before });
    if (step.event === 'issue_comment')
      return issueComment('created', { number: line.number, body: this.#commandBody(step), author: step.author, association: 'MEMBER', createdAt: step.at, id: step.commentId, pullAuthor: `author-${line.number}` });
    return pullRequest(step.action, { ...this.#pullAt(line, step), label: step.label, state: step.action === 'closed' ? 'closed' : 'open' });
  }

  // Sends a webhook until it is accepted, with the same GUID.
  async #deliver(step, payload) {
    for (let attempt = 0; ; attempt++) {
      const { status_code: status, response } = await this.rig.deliver(step.event, payload, { guid: step.guid });
      if (status === 202 || status === 200) {
        const word = JSON.parse(response.body).status;
        if (word === 'ignored') this.problems.push(`a delivery was ignored: ${step.event} ${step.action}: ${response.body}`);
        return;
      }
      if (![502, 503, 504].includes(status)) this.problems.push(`a delivery got ${status}: ${response?.body}`);
      await sleep(Math.min(500, 30 * 2 ** attempt));
    }
  }

  // The arrivals that this step caused, by its GUID. By head and time if the reconciler was faster than the webhook or a comment
  // released the dispatch of another delivery.
  caused(step, where) {
    return this.arrivals.slice(step.order).filter((one) => one.where === where && one.head === step.head && !['cancel', 'closed'].includes(one.action)
      && (one.delivery === step.guid || step.event === 'issue_comment' || !this.#guids.has(one.delivery)));
  }

  get #guids() {
    this.guids ??= new Set(this.story.lines.flatMap(({ steps }) => steps.map(({ guid }) => guid)));
    return this.guids;
  }

  wants(line, step) {
    if (!step.starts) return [];
    return RUNNERS.filter(({ pushes, isLabeled }) => (line.kind === 'pushes' ? pushes : !isLabeled || step.labels?.length > 0)).map(({ where }) => where);
  }

  // repository → the last action that it received for this pull request
  lastActions(line) {
    const last = new Map();
    for (const { where, number, action } of this.arrivals)
      if (number === line.number && where.includes('/')) last.set(where, action);
    return last;
  }

  async #wait(line, step) {
    const slow = { timeout: PATIENCE_MS, interval: 50 };
    const what = `${line.kind} ${line.number ?? ''} ${step.action ?? step.event} ${step.guid} is ${step.wait}`;
    if (step.wait === 'answered')
      await until(() => this.reactions(step).length > 0, { ...slow, what });
    else if (step.wait === 'held')
      await until(async () => (await this.outpost.api(`pulls/${line.number}`)).accelerators.some(({ dispatches }) => dispatches.some(({ state }) => state === 'held')), { ...slow, what });
    else if (step.action === 'closed')
      await until(() => [...this.lastActions(line).values()].every((action) => action === 'closed'), { ...slow, what });
    else
      await until(() => this.wants(line, step).every((where) => this.caused(step, where).length > 0), { ...slow, what });
    if (step.wait !== 'settled') return;
    await until(async () => {
      const view = await this.outpost.api(line.number ? `pulls/${line.number}` : `commits/${step.head}`);
      return view.head_sha === step.head && view.accelerators.filter(({ dispatches }) => dispatches.length > 0).every(({ name, dispatches }) =>
        dispatches.every(({ state }) => ['done', 'superseded', 'cancelled', ...(name === 'quiet-chip' ? ['acknowledged'] : [])].includes(state))
        && dispatches.some(({ state }) => state === (name === 'quiet-chip' ? 'acknowledged' : 'done')));
    }, { ...slow, what });
  }

  async #playLine(line) {
    const payloads = new Map();
    for (const step of line.steps) {
      if (!step.copyOf) this.#happen(line, step);
      step.order = this.arrivals.length;
      const payload = payloads.get(step.copyOf) ?? this.#payload(line, step);
      payloads.set(step.guid, payload);
      await this.#deliver(step, payload);
      this.delivered++;
      this.#progress.emit('step');
      if (step.wait !== 'nothing') await this.#wait(line, step).catch(({ message }) => this.problems.push(message));
    }
  }

  // Plays all lines, a few at a time.
  async play({ width = 6 } = {}) {
    try {
      for (const line of this.story.lines.filter(({ isFirst }) => isFirst)) await this.#playLine(line);
      const queue = this.story.lines.filter(({ isFirst }) => !isFirst);
      const worker = async () => {
        for (let line = queue.shift(); line; line = queue.shift()) await this.#playLine(line);
      };
      await Promise.all(Array.from({ length: width }, worker));
    } finally {
      this.#isPlayed = true;
      this.#progress.emit('step');
    }
  }

  // Waits until this share of the webhooks is accepted, or until the story is played.
  async reaches(share) {
    while (this.delivered < this.story.deliveries * share && !this.#isPlayed) await once(this.#progress, 'step');
  }

  #bots(repository, number) {
    return this.rig.comments(repository, number).filter(({ author }) => author === this.rig.bot);
  }

  // The bot's results comments, replies to a command, reactions to it, check runs of a head (oldest first), and comments on an issue.
  comments(number) {
    return this.#bots(UPSTREAM, number).filter(({ body }) => !body.startsWith('<!-- outpost:reply:'));
  }

  replies(step) {
    return this.#bots(UPSTREAM, step.number).filter(({ body }) => body.startsWith(`<!-- outpost:reply:${step.commentId} -->`));
  }

  reactions(step) {
    return this.rig.reactions(UPSTREAM, step.commentId);
  }

  checks(head, name) {
    return this.rig.checkRuns(UPSTREAM, head).filter((run) => run.name === name).sort((a, b) => a.id - b.id);
  }

  onIssue(number) {
    return this.#bots(ASCEND, number);
  }

  async close() {
    this.isClosing = true;
    await Promise.all(Object.values(this.vendors).map((vendor) => vendor.stop()));
    await this.rig.deliveries.settle();
    await this.outpost.close();
    await Promise.all([this.rig.close(), this.issuer.close()]);
  }
}
