// The 72-hour rule over days, from the first red push to the green one: one issue, one reminder, overdue, closed by itself. The
// daemon's clock moves while it is down, and with it GitHub's, which is this process.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fakeSha, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { follow } from './lib/events.mjs';
import { MovedClock, notMovable } from './lib/moved-clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const CHIP = 'Ascend/pytorch';
const QUIET = 'torch-spyre/torch-spyre';
const SECRET = 'a secret between Outpost and the lab';
const HOUR = 3600;

const pushed = { push: { branches: ['main'] }, pull_request: {} };
const accelerators = (lab) => [
  { name: 'chip', title: 'Chip', level: 'L2', oncall: ['alice', 'bob'], trust: 'anyone', triggers: pushed, runners: [{ name: 'ci', github: { repository: CHIP } }] },
  { name: 'lab-chip', title: 'Lab Chip', level: 'L2', oncall: ['carol'], trust: 'anyone', triggers: pushed, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] },
  { name: 'quiet', title: 'Quiet Chip', level: 'L1', oncall: ['dave'], trust: 'anyone', triggers: pushed, runners: [{ name: 'ci', github: { repository: QUIET } }] },
];

// One service with its GitHub, a vendor and its own clock.
class Story {
  static async begin(options = {}) {
    const story = new Story();
    [story.rig, story.lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
    story.outpost = await Outpost.prepare({
      rig: story.rig, accelerators: accelerators(story.lab), secrets: { 'lab-chip': { hook: SECRET }, chip: { hook: SECRET } }, ...options,
      ...(options.accelerators && { accelerators: options.accelerators(story.lab) }),
    });
    story.clock = await MovedClock.of(story.outpost);
    story.outpost.options.env = story.clock.env;
    await story.outpost.spawn();
    story.tokens = {};
    for (const { name } of story.outpost.options.accelerators)
      story.tokens[name] = (await story.outpost.ctl('token', 'issue', name)).stdout.trim();
    return story;
  }

  async end() {
    try {
      assert.deepEqual(this.rig.violations(), []);
    } finally {
      await this.outpost.close();
      await this.lab.stop();
      await this.rig.close();
      MovedClock.right();
    }
  }

  // Stops the service and starts it so many hours later.
  async at(hours) {
    await this.outpost.stop();
    await this.clock.set(hours * HOUR * 1000);
    await this.outpost.spawn();
  }

  // Pushes a commit to main, for which all accelerators report this status.
  async push(name, status) {
    const before = this.tip ?? fakeSha('before all');
    this.tip = fakeSha(name);
    const answer = await this.rig.deliver('push', push({ before, after: this.tip, message: `${name} (#1)\n\n@pytorch/owners` }));
    assert.equal(answer.status_code, 202);
    await this.report(`commits/${this.tip}`, status);
    return this.tip;
  }

  async report(target, status) {
    for (const { name, level } of this.outpost.options.accelerators) {
      const view = await this.outpost.waitForApi(target, (one) => one.accelerators.some((a) => a.name === name && a.dispatches.length > 0) || level === 'L1', { timeout: 60_000 });
      const id = level === 'L1' ? await this.dispatchOf(name, view.head_sha) : view.accelerators.find((a) => a.name === name).dispatches[0].id;
      const workflow = workflowOf({ workflow: 'ci', job: 'test', run_id: `${name}-${target}`, conclusion: status === 'PASS' ? 'success' : 'failure',
        tests: [{ suite: 'model', name: 'llama3|@everyone', status, message: status === 'PASS' ? '' : 'expected 1, got 2' }] }, 'completed');
      const answer = await post(`${this.outpost.url}/api/v1/dispatches/${id}/jobs`, this.tokens[name], workflow);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      if (level === 'L1') assert.equal(answer.body.status, 'ignored');
    }
  }

  // No page shows an accelerator at L1, so ask the operator's tool.
  async dispatchOf(name, head) {
    return until(async () => {
      const { dispatches } = JSON.parse((await this.outpost.ctl('--json', 'dispatches')).stdout);
      return dispatches.find((one) => one.accelerator === name && one.head_sha === head)?.id;
    });
  }

  figures(name = 'chip') { return this.outpost.api(`accelerators/${name}`); }
  issues(repository = CHIP) { return this.rig.issues(repository); }
  comments() { return this.rig.comments(CHIP, this.issues()[0].number); }
  notified(step, accelerator = 'chip') { return this.outpost.waitForLog({ ev: 'red_episode_notified', step, accelerator }, { timeout: 60_000 }); }
  // Without repetitions: a notice whose answer a crash lost is sent again with the same delivery.
  notices() {
    const all = this.lab.events.filter(({ event }) => !['push', 'pull_request', 'cancel'].includes(event));
    return all.filter(({ delivery }, i) => all.findIndex((one) => one.delivery === delivery) === i);
  }
  notice(event) { return until(() => this.notices().find((one) => one.event === event), { timeout: 60_000, what: `the notice ${event}` }); }
}

describe('an accelerator that is red on main', { skip: notBuilt || notMovable }, () => {
  test('gets one issue and one reminder, is overdue after 72 hours, and the issue closes when it is green', async () => {
    const story = await Story.begin();
    try {
      const good = await story.push('good', 'PASS');
      const bad = await story.push('bad', 'FAIL');
      await story.notified('red');
      const [issue] = story.issues();
      assert.equal(issue.author, story.rig.bot);
      assert.match(issue.title, /^Chip is red on upstream main since \d{4}-\d\d-\d\d$/);
      assert.match(issue.body, /^@alice @bob: Chip has been red on `main` of `pytorch\/pytorch` since /);
      assert.match(issue.body, /<!-- outpost:red:\d+ -->/);
      assert.ok(issue.body.includes(`First bad: [\`${bad.slice(0, 7)}\`](https://github.com/pytorch/pytorch/commit/${bad})`), issue.body);
      assert.ok(issue.body.includes(`Last good: [\`${good.slice(0, 7)}\`]`), issue.body);
      assert.ok(issue.body.includes(`/compare/${good}...${bad})`), issue.body);
      assert.ok(issue.body.includes('`model/llama3|@everyone`'), issue.body);
      assert.ok(!/@(?!alice|bob|everyone)/.test(issue.body.replaceAll(/`[^`]*`/g, '')), issue.body);
      const red = await story.notice('red');
      assert.equal(red.valid, true);
      assert.equal(red.body.accelerator, 'lab-chip');
      assert.equal(red.body.first_bad.sha, bad);
      assert.equal(red.body.last_good.sha, good);
      assert.deepEqual(red.body.tests, ['model/llama3|@everyone']);
      assert.deepEqual(red.body.commits.map(({ sha }) => sha), [bad]);
      const figures = await story.figures();
      assert.equal(figures.overdue, false);
      assert.ok(figures.red_since);

      await story.outpost.restart({ hard: true });
      await story.push('still bad', 'FAIL');
      await story.at(49);
      await story.notified('reminder');
      await story.notice('reminder');
      assert.equal(story.comments().length, 1);
      assert.match(story.comments()[0].body, /^@alice @bob: Chip has been red on /);
      await story.at(50);
      await story.push('bad for long', 'FAIL');
      await story.at(73);
      await story.notified('overdue');
      await story.notice('overdue');
      assert.deepEqual(story.comments().map(({ body }) => /outpost:red:\d+:(\w+)/.exec(body)[1]), ['reminder', 'overdue']);
      assert.equal((await story.figures()).overdue, true);

      await story.outpost.restart();
      const green = await story.push('mended', 'PASS');
      await story.notified('green');
      const notice = await story.notice('green');
      assert.equal(notice.body.green.sha, green);
      assert.equal(story.issues().length, 1);
      assert.equal(story.issues()[0].state, 'closed');
      assert.deepEqual(story.comments().map(({ body }) => /outpost:red:\d+:(\w+)/.exec(body)[1]), ['reminder', 'overdue', 'green']);
      assert.deepEqual(story.notices().map(({ event }) => event), ['red', 'reminder', 'overdue', 'green']);
      const after = await story.figures();
      assert.equal(after.red_since, null);
      assert.equal(after.numbers.red_episodes, 1);
      assert.ok(after.numbers.reaction_time > 72 * HOUR);

      // Another episode has another issue.
      await story.push('bad again', 'FAIL');
      await until(() => story.issues().length === 2, { timeout: 60_000 });
      const { stdout } = await story.outpost.ctl('status');
      assert.match(stdout, /chip +L2 +\d+ %/);
    } finally {
      await story.end();
    }
  });

  test('an accelerator at L1 is shown nowhere', async () => {
    const story = await Story.begin();
    try {
      const events = follow(story.outpost, ['accelerators/quiet', 'accelerators/chip']);
      await events.next(2); // the first event of each watch
      await story.push('bad', 'FAIL');
      await story.notified('red');
      const pull = story.rig.openPull(UPSTREAM, { number: 7, author: 'alice', association: 'MEMBER' });
      await story.rig.deliver('pull_request', pullRequestOf('opened', pull));
      await story.report('pulls/7', 'FAIL');
      const comment = await until(() => story.rig.comments(UPSTREAM, 7).find(({ body }) => /Lab Chip/.test(body)), { timeout: 60_000 });
      assert.ok(!/[Qq]uiet|dave/.test(comment.body), comment.body);
      await until(() => events.unread.length > 0, { timeout: 60_000 });
      events.close();
      assert.deepEqual([...new Set(events.unread.map(({ data }) => data.watch))], ['accelerators/chip']);
      const quiet = await story.figures('quiet');
      assert.equal(quiet.level, 'L1');
      for (const field of ['red_since', 'health', 'unhealthy_since', 'pass_rate', 'last_report']) assert.equal(quiet[field], null, field);
      assert.equal(quiet.numbers.push_runs, 0);
      assert.equal(quiet.dispatches_30d, 0);
      assert.equal(quiet.proposal.level, 'L1');
      for (const target of ['pulls/7', `commits/${story.tip}`]) {
        const view = await story.outpost.api(target);
        assert.deepEqual(view.verdicts.filter(({ accelerator }) => accelerator === 'quiet'), []);
      }
      assert.deepEqual(story.issues(QUIET), []);
      assert.deepEqual(story.rig.checkRuns(UPSTREAM).filter(({ name }) => /quiet|spyre/i.test(name)), []);
    } finally {
      await story.end();
    }
  });

  test('a crash after the issue is created does not create a second one', async () => {
    const story = await Story.begin();
    try {
      const fault = story.rig.fault({ kind: 'hang', method: 'POST', path: '/repos/{owner}/{repo}/issues', when: 'after' });
      await story.push('bad', 'FAIL');
      await until(() => fault.struck === 1 && story.issues().length === 1, { timeout: 60_000 });
      await story.outpost.kill();
      await story.outpost.spawn();
      await story.notified('red');
      const hang = story.rig.fault({ kind: 'hang', method: 'POST', path: '/repos/{owner}/{repo}/issues/{issue_number}/comments', when: 'after' });
      await story.at(49);
      await until(() => hang.struck === 1 && story.comments().length === 1, { timeout: 60_000 });
      await story.outpost.kill();
      await story.outpost.spawn();
      await story.notified('reminder');
      assert.equal(story.issues().length, 1);
      assert.equal(story.comments().length, 1);
    } finally {
      await story.end();
    }
  });

  test('an issue whose creation was not recorded is found and closed, even if the accelerator is green by then', async () => {
    const story = await Story.begin();
    try {
      const lost = story.rig.fault({ kind: 'hang', method: 'POST', path: '/repos/{owner}/{repo}/issues', when: 'after' });
      await story.push('bad', 'FAIL');
      await until(() => lost.struck === 1 && story.issues().length === 1, { timeout: 60_000 });
      await story.outpost.kill();
      const unseen = story.rig.fault({ kind: 'status', status: 502, method: 'GET', path: '/repos/{owner}/{repo}/issues', count: 1000 });
      await story.outpost.spawn();
      await until(() => unseen.struck > 0, { timeout: 60_000 });
      await story.push('good again', 'PASS');
      await story.outpost.waitForLog({ ev: 'branch_green', accelerator: 'chip' }, { timeout: 60_000 });
      story.rig.clearFaults();
      await story.notified('green');
      assert.deepEqual(story.issues().map(({ state }) => state), ['closed']);
      assert.equal(story.comments().length, 1);
    } finally {
      await story.end();
    }
  });

  test('a repository without issues is not retried for ever', async () => {
    const story = await Story.begin({
      accelerators: (lab) => [{ ...accelerators(lab)[0], runners: [...accelerators(lab)[0].runners, { name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
    });
    try {
      const fault = story.rig.fault({ kind: 'status', status: 410, method: 'POST', path: '/repos/{owner}/{repo}/issues', count: 9 });
      const first = fakeSha('bad');
      await story.rig.deliver('push', push({ before: fakeSha('before all'), after: first }));
      const view = await story.outpost.waitForApi(`commits/${first}`, (one) => one.accelerators[0]?.dispatches.length === 2, { timeout: 60_000 });
      for (const { id } of view.accelerators[0].dispatches)
        await post(`${story.outpost.url}/api/v1/dispatches/${id}/jobs`, story.tokens.chip, workflowOf({ workflow: 'ci', job: 'test', run_id: '1', conclusion: 'failure' }, 'completed'));
      const red = await story.notice('red');
      assert.equal(red.body.accelerator, 'chip');
      await story.at(49);
      await story.notice('reminder');
      assert.equal(fault.struck, 1);
      assert.deepEqual(story.issues(), []);
    } finally {
      await story.end();
    }
  });
});
