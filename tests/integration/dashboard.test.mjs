// The API of the dashboard and of an accelerator with its jobs and numbers, after pushes and reports through the real
// interface.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fakeSha, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const HOSTILE = '</script><img src=x onerror=alert(1)>\u202e\u2028"\'&';
const NAMES = ['good', 'bad', 'behind'];

// Sums over all days, because midnight may pass during the test.
const sum = (days, key) => days.reduce((n, day) => n + key.split('.').reduce((of, word) => of[word], day), 0);

const triggers = { push: { branches: ['main'] }, pull_request: {} };
const accelerator = (name, level, more) => ({ name, title: `${name} chip </script><img src=x onerror=alert(1)>`, vendor: 'A vendor', level, trust: 'anyone', triggers, links: { docs: 'https://vendor.example/docs' },
  runners: [{ name: 'ci', pull: { labels: ['any'], max_parallel: 9 } }], ...more });

describe('the dashboard and accelerators', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  const tokens = {};
  let tip = fakeSha('before all');
  const shas = [];

  const api = async (path, status = 200) => {
    const answer = await outpost.get(`/api/v1/${path}`);
    assert.equal(answer.status, status, `${path}: ${answer.text}`);
    return JSON.parse(answer.text);
  };

  async function dispatchOf(name, head) {
    const view = await outpost.waitForApi(`commits/${head}`, (one) => one.accelerators.some((a) => a.name === name && a.dispatches.length > 0), { timeout: 60_000 });
    return view.accelerators.find((a) => a.name === name).dispatches[0].id;
  }

  // Reports a job of one accelerator: in progress, then completed with these tests.
  async function report(name, head, tests) {
    const id = await dispatchOf(name, head);
    const isRed = tests.some(({ status }) => ['FAIL', 'ERROR', 'MISS'].includes(status));
    const job = { workflow: 'ci', job: 'test', run_id: `${name}-${head}`, conclusion: isRed ? 'failure' : 'success', tests };
    for (const state of ['in_progress', 'completed']) {
      const answer = await post(`${outpost.url}/api/v1/dispatches/${id}/jobs`, tokens[name], workflowOf(job, state));
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  }

  async function pushed(title) {
    const before = tip;
    tip = fakeSha(title);
    const { status_code } = await rig.deliver('push', push({ before, after: tip, message: title }));
    assert.equal(status_code, 202);
    shas.push(tip);
    return tip;
  }

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig,
      accelerators: [...NAMES.map((name) => accelerator(name, 'L2')), accelerator('fresh', 'L3'), accelerator('quiet', 'L1'),
        accelerator('farmed', 'L2', { triggers: { schedule: ['0 2 * * *'] } })],
    });
    for (const name of [...NAMES, 'quiet']) tokens[name] = (await outpost.ctl('token', 'issue', name)).stdout.trim();
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  test('accelerators without a report have empty values', async () => {
    const view = await until(async () => {
      const one = await api('dashboard');
      return one.accelerators.length === 5 && one; // the registry is mirrored
    }, { timeout: 60_000 });
    assert.equal(view.repository, UPSTREAM);
    assert.equal(view.branch, 'main');
    assert.equal(view.newest, null);
    assert.deepEqual([view.suites, view.running, view.running_total], [[], [], 0]);
    assert.ok(!view.accelerators.some(({ name }) => name === 'quiet'));
    for (const a of view.accelerators) {
      assert.deepEqual([a.commit, a.no_report, a.suites, a.pass_rate, a.red_since, a.red_by, a.overdue, a.last_report], [null, null, [], null, null, null, false, null]);
      assert.equal(a.trend.length, 30);
      assert.equal(a.nightly.length, 30);
      assert.ok(Math.abs(Date.parse(a.trend[29].day) - Date.now()) <= 86_400_000 + 60_000);
    }
  });

  test('each accelerator is at the newest commit that it tested, and the worst is first', async () => {
    const number = (value) => ({ value, unit: `tokens/s ${HOSTILE}`.slice(0, 20) });
    const all = (status, value) => [{ suite: 'model', name: 'llama3', status, message: status === 'PASS' ? '' : HOSTILE }, { suite: 'unit', name: 'a', status: 'PASS' },
      { suite: HOSTILE, name: HOSTILE, status: 'DONE', number: number(value) }];

    await pushed('first');
    for (const name of NAMES) await report(name, tip, all('PASS', 10));
    await pushed('second');
    await pushed(`third ${HOSTILE}`);
    await report('good', tip, all('PASS', 20));
    await report('bad', tip, all('FAIL', 30));
    const view = await api('dashboard');
    assert.equal(view.newest.sha, tip);
    assert.equal(view.newest.title, `third ${HOSTILE}`);
    assert.equal(view.newest.accelerators, 2);
    assert.deepEqual(view.suites.slice(0, 2), ['unit', 'model']);
    assert.equal(view.suites.length, 3);
    assert.equal(view.accelerators[0].name, 'bad');
    const of = (name) => view.accelerators.find((a) => a.name === name);
    assert.deepEqual(NAMES.map((name) => of(name).commit.distance), [0, 0, 2]);
    assert.equal(of('behind').commit.sha, shas[0]);
    assert.equal(of('behind').commit.url, `${outpost.url}/commits/${shas[0]}`);
    const model = of('bad').suites.find(({ suite }) => suite === 'model');
    assert.deepEqual([model.status, model.red, model.tests], ['FAIL', 1, { pass: 0, fail: 1, error: 0, miss: 0, done: 0, skip: 0 }]);
    assert.deepEqual((await api('accelerators/bad/jobs')).jobs[0].id, model.job);
    assert.ok(of('bad').red_since);
    assert.equal(of('bad').red_by, 'tests');
    assert.deepEqual([sum(of('bad').trend, 'runs'), sum(of('bad').trend, 'green')], [2, 1]);
    assert.equal(of('bad').pass_rate, 0.5);
    assert.equal(of('good').pass_rate, 1);
    assert.equal(of('fresh').level, 'L3');
  });

  test('running dispatches are listed, the oldest first', async () => {
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 7, title: `A change ${HOSTILE}` })));
    const view = await until(async () => {
      const one = await api('dashboard');
      return one.running.some(({ number, accelerator: name }) => number === 7 && name === 'fresh') && one;
    }, { timeout: 60_000 });
    assert.equal(view.running_total, view.running.length);
    const mine = view.running.find(({ number }) => number === 7);
    assert.equal(mine.url, `${outpost.url}/pulls/7`);
    assert.equal(mine.kind, 'pull_request');
    assert.equal(mine.title, `A change ${HOSTILE}`);
    assert.ok(!view.running.some(({ accelerator: name }) => name === 'quiet' || name === ''));
    assert.deepEqual(view.running.map(({ since }) => since), view.running.map(({ since }) => since).toSorted());
    const ofMain = view.running.find(({ kind, accelerator: name }) => kind === 'push' && name === 'behind');
    assert.equal(ofMain.url, `${outpost.url}/commits/${ofMain.head_sha}`);
  });

  test('an accelerator has its trend, red state, jobs and runners', async () => {
    const a = await api('accelerators/bad');
    assert.equal(a.trend.length, 90);
    assert.equal(a.calendar.length, 365);
    assert.deepEqual(['pass', 'fail', 'error', 'miss', 'done', 'skip'].map((status) => sum(a.trend, `tests.${status}`)), [3, 1, 0, 0, 2, 0]);
    assert.ok(a.trend.some(({ run_p90 }) => run_p90 !== null) && a.trend.every(({ run_p90 }) => run_p90 === null || run_p90 >= 0));
    assert.equal(a.red.first_bad.sha, tip);
    assert.equal(a.red.last_good.sha, shas[0]);
    assert.deepEqual(a.red.tests, ['model/llama3']);
    assert.equal(Date.parse(a.red.overdue_at) - Date.parse(a.red.since), 72 * 3600_000);
    assert.equal(a.red_since, a.red.since);
    assert.equal(a.jobs.length, 2);
    assert.equal(a.jobs_next, null);
    const [newest] = a.jobs;
    assert.deepEqual([newest.kind, newest.number, newest.head_sha, newest.verdict, newest.late], ['push', null, tip, 'FAIL', false]);
    assert.deepEqual(newest.tests, { pass: 1, fail: 1, error: 0, miss: 0, done: 1, skip: 0 });
    assert.ok(newest.duration >= 0 && newest.queued >= 0);
    assert.equal(newest.change_url, `${outpost.url}/commits/${tip}`);
    assert.equal(a.schedule, null);
    assert.deepEqual(a.runners, [{ name: 'ci', kind: 'pull', machines: [], reruns: 'none' }]);
    assert.equal((await api('accelerators/good')).red, null);
  });

  test('an accelerator has its machines and its schedule', async () => {
    const { stdout } = await outpost.ctl('runner', 'add', 'machine-1', '--accelerator', 'farmed');
    assert.ok(stdout.trim());
    const a = await until(async () => {
      const one = await api('accelerators/farmed');
      return one.runners[0].machines.length && one.schedule && one;
    }, { timeout: 60_000 });
    assert.deepEqual(a.runners[0].machines, [{ name: 'machine-1', last_seen: null, busy: false }]);
    assert.deepEqual(a.schedule.cron, ['0 2 * * *']);
    assert.ok(Date.parse(a.schedule.next) > Date.now());
    assert.equal(a.schedule.skip_next, false);
  });

  test('a cursor over jobs stays correct while new jobs arrive', async () => {
    const first = await api('accelerators/bad/jobs?limit=1');
    assert.equal(first.jobs.length, 1);
    await pushed('fourth');
    await report('bad', tip, [{ suite: 'unit', name: 'a', status: 'PASS' }]);
    const second = await api(`accelerators/bad/jobs?limit=1&cursor=${first.next}`);
    assert.equal(second.jobs.length, 1);
    assert.ok(second.jobs[0].id < first.jobs[0].id);
    assert.equal(second.next, null);
  });

  test('a series of numbers has the newest value of each day', async () => {
    const { days, series, next } = await api('accelerators/bad/numbers');
    assert.equal(days, 90);
    assert.equal(next, null);
    assert.equal(series.length, 1);
    assert.equal(series[0].suite, HOSTILE);
    assert.ok(series[0].unit.startsWith('tokens/s'));
    assert.ok(series[0].points.length >= 1 && series[0].points.length <= 2); // two if midnight passed
    assert.deepEqual([series[0].points.at(-1).value, series[0].points.at(-1).sha], [30, shas[2]]);
    assert.equal((await api('accelerators/good/numbers?days=1')).series[0].points.at(-1).value, 20);
    const first = await api('accelerators/bad/numbers?limit=1');
    assert.deepEqual(first.series.length, 1);
  });

  test('an accelerator at L1 shows no results', async () => {
    const a = await api('accelerators/quiet');
    assert.deepEqual([a.jobs, a.jobs_next, a.red, a.health], [[], null, null, null]);
    assert.ok(a.trend.every(({ runs, queue_p50 }) => runs === 0 && queue_p50 === null));
    assert.ok(a.calendar.every(({ outcome, url }) => outcome === null && url === null));
    assert.deepEqual(await api('accelerators/quiet/jobs'), { jobs: [], next: null });
    assert.deepEqual(await api('accelerators/quiet/numbers'), { days: 90, series: [], next: null });
  });

  test('an unknown accelerator is 404, and a wrong parameter is 400 with its name', async () => {
    for (const path of ['accelerators/nobody', 'accelerators/nobody/jobs', 'accelerators/nobody/numbers', `accelerators/${encodeURIComponent(HOSTILE)}`])
      assert.ok((await api(path, 404)).error);
    for (const [query, named] of Object.entries({
      'jobs?limit=0': 'limit', 'jobs?limit=501': 'limit', 'jobs?limit=x': 'limit', 'jobs?cursor=%21': 'cursor', 'jobs?cursor=YWJj': 'cursor', 'jobs?cursor=LTE': 'cursor',
      'numbers?days=0': 'days', 'numbers?days=801': 'days', 'numbers?limit=-1': 'limit', 'numbers?cursor=YWJj': 'cursor', 'numbers?cursor=MQ': 'cursor',
    })) {
      const { error } = await api(`accelerators/bad/${query}`, 400);
      assert.match(error, new RegExp(named), query);
    }
  });

  test('the pages embed the API\'s answer, and no text breaks out of it', async () => {
    for (const [page, path] of [['/', 'dashboard'], ['/accelerators/bad', 'accelerators/bad']]) {
      const { status, headers, text } = await outpost.get(page);
      assert.equal(status, 200);
      assert.match(headers['content-type'], /^text\/html/);
      assert.ok(!text.includes('<img'));
      const data = JSON.parse(/<script[^>]*id="?data"?[^>]*>([^<]*)<\/script>/.exec(text)[1]);
      assert.equal(data.status, 200);
      assert.equal(data.api.split('?')[0], `/api/v1/${path}`);
      assert.deepEqual(data.body, await api(path));
    }
    assert.equal((await outpost.get('/accelerators/nobody')).status, 404);
  });
});
