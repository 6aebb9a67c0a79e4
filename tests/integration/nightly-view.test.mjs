// Self-reported periodic runs over several days: each test's row of days, its commits, filters and paging. The clock moves while
// the daemon runs, and GitHub's clock with it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, workflowOf } from '../github/vendors.mjs';
import { MovedClock, notMovable, realNow } from './lib/moved-clock.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const DAY = 86_400_000;
const HOSTILE = '</script><img src=x onerror=alert(1)>\u202e|`@everyone`';
const LONG = { timeout: 60_000 };

const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);

// One letter per day, oldest first: P pass, F fail, E error, M miss, S skip, . no result.
const ROWS = {
  npu: { 'model/llama3': 'PPPPF', 'model/bert': 'PPFFP', 'unit/flip': 'PFPFP', 'unit/gone': 'PPPP.', 'unit/calm': 'PPPPP', 'unit/off': 'SSSSS', 'unit/old': 'PFEFM', [`unit/${HOSTILE}`]: 'PPPPP' },
  xpu: { 'model/llama3': 'PPPPE', 'unit/calm': 'PPPPP' },
  quiet: { 'unit/hidden': 'PPPPF' },
};
const STATES = {
  npu: { 'model/llama3': 'regression', 'model/bert': 'fixed', 'unit/flip': 'unstable', 'unit/gone': 'disappeared', 'unit/calm': 'passing', 'unit/off': 'skipped', 'unit/old': 'still_failing', [`unit/${HOSTILE}`]: 'passing' },
  xpu: { 'model/llama3': 'regression', 'unit/calm': 'passing' },
};
const STATUS = { P: 'PASS', F: 'FAIL', E: 'ERROR', M: 'MISS', S: 'SKIP' };
const REPOSITORY = { npu: 'Ascend/pytorch', xpu: 'intel/torch-xpu-ops', quiet: 'quiet/quiet' };

const accelerators = Object.entries(REPOSITORY).map(([name, repository]) => ({
  name, title: name === 'npu' ? 'NPU <b>' : name, level: name === 'quiet' ? 'L1' : 'L2', runners: [{ name: 'ci', github: { repository } }],
  triggers: { pull_request: false, ...(name === 'npu' && { schedule: ['0 0 1 1 *'] }) },
}));

describe('the row of days', { skip: notBuilt || notMovable }, () => {
  let rig;
  let issuer;
  let outpost;
  let clock;
  const start = Math.floor(realNow() / DAY) * DAY + DAY + DAY / 2; // noon of tomorrow, so that no run crosses midnight
  const shas = { npu: [], xpu: [], quiet: [] };
  const days = [0, 1, 2, 3, 4].map((n) => dayOf(start + n * DAY));

  before(async () => {
    [rig, issuer] = await Promise.all([startRig({ repositories: [UPSTREAM, ...Object.values(REPOSITORY)].map((name) => ({ name })) }), startIssuer()]);
    outpost = await Outpost.prepare({
      rig, issuers: [issuer], config: { comment: { enabled: false } },
      accelerators,
    });
    clock = await MovedClock.of(outpost);
    await moveTo(0);
    outpost.options.env = clock.env;
    await outpost.spawn();
    for (let n = 0; n < days.length; n++) await night(n);
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
    MovedClock.right();
  });

  const moveTo = (n) => clock.set(start + n * DAY - realNow());

  // Pushes a commit to main with its webhook.
  async function commit(message) {
    const tip = rig.world.branchTip(UPSTREAM, 'main');
    const sha = rig.push(UPSTREAM, { message });
    const { status_code: code } = await rig.deliver('push', push({ before: tip, after: sha, message }));
    assert.equal(code, 202);
    return sha;
  }

  async function report(name, sha, tests, more = {}) {
    const workflow = workflowOf({ workflow: 'nightly', job: 'all', run_id: `${name}-${sha}`, conclusion: tests.some(({ status }) => /FAIL|ERROR/.test(status)) ? 'failure' : 'success', tests, ...more }, 'completed');
    const answer = await post(`${outpost.url}/github/callback`, await issuer.mint(githubClaims(REPOSITORY[name])), { event_type: 'nightly', delivery_id: sha, payload: { head_sha: sha }, workflow });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.job;
  }

  const testsOf = (name, n) => Object.entries(ROWS[name]).filter(([, row]) => row[n] !== '.').map(([title, row]) => ({
    suite: title.slice(0, title.indexOf('/')), name: title.slice(title.indexOf('/') + 1), status: STATUS[row[n]], message: row[n] === 'F' ? 'expected 1, got 2' : '',
  }));

  // Webhooks announce main. The xpu tests a branch without webhooks.
  async function night(n) {
    await moveTo(n);
    await commit(`Change ${n}a (#${n})`);
    shas.npu[n] = await commit(`Change ${n}b`);
    shas.xpu[n] = rig.push(UPSTREAM, { branch: 'side', message: `Side ${n}` });
    shas.quiet[n] = shas.npu[n];
    for (const name of Object.keys(ROWS)) await report(name, shas[name][n], testsOf(name, n));
  }

  const ask = async (query = '') => {
    const answer = await outpost.get(`/api/v1/nightly?days=5${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const cellOf = (answer, accelerator, title) => answer.tests.find((one) => `${one.suite}/${one.name}` === title)?.cells.find((one) => one.accelerator === accelerator);
  const titles = (answer) => answer.tests.map((one) => `${one.suite}/${one.name}`);

  test('tests have their state and days, the worst first, and accelerators their runs', async () => {
    const answer = await ask();
    assert.deepEqual(answer.days, days);
    assert.deepEqual(answer.accelerators.map(({ name, level }) => [name, level]), [['npu', 'L2'], ['xpu', 'L2']]);
    for (const [name, states] of Object.entries(STATES))
      for (const [title, state] of Object.entries(states)) {
        const shown = title.includes(HOSTILE) ? titles(answer).find((one) => one.includes('onerror')) : title;
        const cell = cellOf(answer, name, shown);
        assert.equal(cell?.state, state, `${name} ${title}`);
        assert.deepEqual(cell.days.map((one) => one?.status ?? null), [...ROWS[name][title]].map((letter) => STATUS[letter] ?? null), `${name} ${title}`);
        for (const one of cell.days) assert.ok(one === null || Number.isInteger(one.job));
      }
    assert.deepEqual(titles(answer).slice(0, 5), ['model/llama3', 'unit/old', 'unit/flip', 'unit/gone', 'model/bert']);
    assert.equal(titles(answer).at(-1), 'unit/off');
    assert.deepEqual(answer.counts, { regression: 2, still_failing: 1, unstable: 1, disappeared: 1, fixed: 1, passing: 3, skipped: 1 });
    assert.equal(answer.next, null);
    const [npu, xpu] = answer.accelerators;
    assert.equal(npu.title, 'NPU <b>');
    assert.deepEqual([npu.schedule.cron, npu.schedule.skip_next, xpu.schedule], [['0 0 1 1 *'], false, null]);
    assert.deepEqual(npu.runs.map((run) => run.outcome), ['green', 'red', 'red', 'red', 'red']);
    assert.deepEqual(xpu.runs.map((run) => [run.day, run.cause, run.state, run.upstream_sha]), days.map((day, n) => [day, 'self_report', 'done', shas.xpu[n]]));
  });

  test('the commits between first bad and last good come from pushes or from GitHub', async () => {
    const answer = await ask();
    const regression = cellOf(answer, 'npu', 'model/llama3');
    assert.deepEqual([regression.since, regression.first_bad.day, regression.last_good.day], [days[4], days[4], days[3]]);
    assert.deepEqual([regression.first_bad.upstream_sha, regression.last_good.upstream_sha], [shas.npu[4], shas.npu[3]]);
    assert.equal(regression.first_bad.url, `${outpost.url}/jobs/${regression.first_bad.job}`);
    assert.equal((await outpost.api(`jobs/${regression.first_bad.job}`)).id, regression.first_bad.job);
    assert.equal(regression.commits.url, `https://github.com/${UPSTREAM}/compare/${shas.npu[3]}...${shas.npu[4]}`);
    assert.deepEqual([regression.commits.count, regression.commits.known.map((one) => one.title)], [2, ['Change 4b', 'Change 4a (#4)']]);
    assert.equal(regression.commits.known[0].url, `https://github.com/${UPSTREAM}/commit/${shas.npu[4]}`);
    const failing = cellOf(answer, 'npu', 'unit/old');
    assert.deepEqual([failing.since, failing.first_bad.day, failing.last_good.day], [days[1], days[1], days[0]]);
    const fixed = cellOf(answer, 'npu', 'model/bert');
    assert.deepEqual([fixed.since, fixed.first_bad.day, fixed.last_good.day], [days[4], days[2], days[1]]);
    assert.deepEqual([cellOf(answer, 'npu', 'unit/gone').since, cellOf(answer, 'npu', 'unit/calm').first_bad], [days[4], null]);
    const asked = await outpost.waitForApi('nightly?days=5', (one) => cellOf(one, 'xpu', 'model/llama3').commits.count === 1, LONG);
    const { commits } = cellOf(asked, 'xpu', 'model/llama3');
    assert.deepEqual(commits.known.map((one) => [one.sha, one.title]), [[shas.xpu[4], 'Side 4']]);
    assert.equal(commits.url, `https://github.com/${UPSTREAM}/compare/${shas.xpu[3]}...${shas.xpu[4]}`);
    assert.deepEqual(rig.violations(), []);
  });

  test('filters select tests and accelerators', async () => {
    assert.deepEqual(titles(await ask('&state=regression')), ['model/llama3']);
    assert.deepEqual(titles(await ask('&state=passing&accelerator=xpu')), ['unit/calm']);
    assert.deepEqual(titles(await ask('&suite=model')).toSorted(), ['model/bert', 'model/llama3']);
    assert.deepEqual(titles(await ask('&q=FLI')), ['unit/flip']);
    assert.deepEqual(titles(await ask('&q=no-such-test')), []);
    assert.deepEqual(titles(await ask(`&q=${encodeURIComponent('%')}`)), []);
    const xpu = await ask('&accelerator=xpu');
    assert.deepEqual([xpu.accelerators.map(({ name }) => name), xpu.counts.regression, xpu.counts.fixed], [['xpu'], 1, 0]);
    assert.ok(xpu.tests.every(({ cells }) => cells.every(({ accelerator }) => accelerator === 'xpu')));
    assert.deepEqual((await ask('&suite=model')).counts, { regression: 2, still_failing: 0, unstable: 0, disappeared: 0, fixed: 1, passing: 0, skipped: 0 });
    const earlier = await outpost.api(`nightly?days=2&until=${days[1]}`);
    assert.deepEqual([earlier.days, cellOf(earlier, 'npu', 'unit/flip').days.map(({ status }) => status)], [days.slice(0, 2), ['PASS', 'FAIL']]);
  });

  test('a cursor stays correct while results are added', async () => {
    const whole = titles(await ask());
    const seen = [];
    let next = '';
    do {
      const part = await ask(`&limit=2${next && `&cursor=${next}`}`);
      assert.ok(part.tests.length <= 2);
      seen.push(...titles(part));
      next = part.next;
    } while (next);
    assert.deepEqual(seen, whole);
    const first = await ask('&limit=1');
    await report('xpu', shas.xpu[4], [...testsOf('xpu', 4), { suite: 'model', name: 'aa', status: 'FAIL' }], { run_attempt: 2 });
    const rest = await ask(`&limit=500&cursor=${first.next}`);
    assert.deepEqual(titles(rest).filter((title) => whole.includes(title)), whole.slice(1));
    assert.equal(new Set(titles(rest)).size, rest.tests.length);
  });

  test('a wrong parameter is 400 with its name', async () => {
    for (const [query, name] of [['days=0', 'days'], ['days=91', 'days'], ['days=x', 'days'], ['until=yesterday', 'until'], ['until=2026-02-30', 'until'], ['state=broken', 'state'],
      ['limit=501', 'limit'], ['limit=-1', 'limit'], ['cursor=!', 'cursor'], ['cursor=AAAA', 'cursor'], [`cursor=${Buffer.from('9 1 unit').toString('base64url')}`, 'cursor'], [`q=${'x'.repeat(300)}`, 'q'], ['suite=%ff', 'suite'],
      [`accelerator=${'x'.repeat(100)}`, 'accelerator']]) {
      const answer = await outpost.get(`/api/v1/nightly?${query}`);
      assert.equal(answer.status, 400, `${query}: ${answer.text.slice(0, 200)}`);
      assert.ok(answer.json.error.startsWith(name), answer.json.error);
    }
  });

  test('an unregistered accelerator is 404', async () => {
    for (const name of ['nope', '<b>']) {
      const answer = await outpost.get(`/api/v1/nightly?accelerator=${encodeURIComponent(name)}`);
      assert.deepEqual([answer.status, answer.json], [404, { error: `no accelerator is called ${name}` }]);
    }
    const page = await outpost.get('/nightly?accelerator=nope');
    assert.equal(page.status, 404);
    assert.match(page.text, /"status":404.*"error":"no accelerator is called nope"/s);
  });

  test('an accelerator at L1 is not shown', async () => {
    for (const query of ['', '&accelerator=quiet', '&q=hidden', '&state=regression']) assert.doesNotMatch(JSON.stringify(await ask(query)), /quiet|hidden/);
    assert.deepEqual((await ask('&accelerator=quiet')).accelerators, []);
  });

  test('the page embeds the answer, even with hostile test names', async () => {
    const { status, text, headers } = await outpost.get('/nightly?days=5');
    assert.equal(status, 200);
    assert.match(headers['content-type'], /^text\/html/);
    assert.doesNotMatch(text, /<img src=x/);
    assert.match(text, /llama3/);
  });

  test('the answer survives a restart, and a new attempt of a run replaces its results', async () => {
    const before_ = await ask('&accelerator=npu');
    await outpost.restart({ hard: true });
    assert.deepEqual(await ask('&accelerator=npu'), before_);
    await report('npu', shas.npu[4], testsOf('npu', 4).map((one) => ({ ...one, status: one.name === 'llama3' ? 'PASS' : one.status })), { run_attempt: 2 });
    const corrected = await ask('&accelerator=npu');
    assert.equal(cellOf(corrected, 'npu', 'model/llama3').state, 'passing');
    assert.equal(corrected.counts.regression, 0);
  });

  test('an accelerator that left the registry keeps its runs', async () => {
    const before_ = await ask('&accelerator=xpu');
    await outpost.configure({ accelerators: accelerators.filter(({ name }) => name !== 'xpu') });
    await outpost.reload();
    const { accelerators: [xpu], tests } = await ask('&accelerator=xpu');
    assert.deepEqual([xpu.name, xpu.runs], ['xpu', before_.accelerators[0].runs]);
    assert.deepEqual(tests.map(({ name }) => name), before_.tests.map(({ name }) => name));
  });
});
