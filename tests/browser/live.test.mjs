// Pages that change while they are open: results arrive, the daemon dies and comes back or stays away. Also a fresh install and
// hostile names.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { WAIT_MS } from '../github/patience.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { HOSTILE } from '../integration/lib/hostile.mjs';
import { notBuilt, Outpost } from '../integration/lib/outpost.mjs';
import { DESK, launch, noBrowser, PHONE, Window } from './browser.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const WAIT = { timeout: WAIT_MS };
const RIGHT_TO_LEFT = '\u202e'; // reverses the text after it

describe('pages that stay open', { skip: notBuilt || noBrowser }, () => {
  let browser;
  let rig;
  let lab;
  let outpost;
  let token;
  let next = 100;

  before(async () => {
    [browser, rig, lab] = await Promise.all([launch(), startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', trust: 'anyone', triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      secrets: { chip: { hook: SECRET } },
    });
    token = (await outpost.ctl('token', 'issue', 'chip')).stdout.trim();
  });

  after(async () => {
    await browser?.close();
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  async function opened(more = {}) {
    const pull = rig.openPull(UPSTREAM, { number: next++, association: 'CONTRIBUTOR', ...more });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const view = await outpost.waitForApi(`pulls/${pull.number}`, ({ accelerators }) => accelerators[0]?.dispatches.length > 0, WAIT);
    return { ...pull, dispatch: view.accelerators[0].dispatches[0].id };
  }

  async function report({ dispatch }, job, tests, status = 'completed') {
    const answer = await post(`${outpost.url}/api/v1/dispatches/${dispatch}/jobs`, token, workflowOf({ workflow: 'ci', job, run_id: `${dispatch} ${job}`, conclusion: tests.some(({ status: said }) => said !== 'PASS') ? 'failure' : 'success', tests }, status));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.job;
  }

  const open = (options) => Window.open(browser, { origin: outpost.url, ...options });

  test('a result appears without a reload, even after the daemon was killed', async () => {
    const pull = await opened();
    const window = await open();
    await window.visit(`/pulls/${pull.number}`);
    await window.page.evaluate(() => { window.isTheSame = true; });
    await report(pull, 'one', [{ suite: 'model', name: 'llama3', status: 'PASS' }, { suite: 'model', name: 'Qwen', status: 'FAIL', message: 'expected 1, got 2' }]);
    await window.page.getByText('Qwen').first().waitFor(WAIT);
    window.clean();
    await outpost.restart({ hard: true });
    await report(pull, 'two', [{ suite: 'model', name: 'whisper', status: 'FAIL', message: 'no kernel' }]);
    await window.page.getByText('whisper').first().waitFor(WAIT);
    assert.equal(await window.page.evaluate(() => window.isTheSame), true, 'the page was never reloaded');
    await window.close();
  });

  test('a page says that the daemon is unreachable and keeps its contents', async () => {
    const pull = await opened();
    await report(pull, 'one', [{ suite: 'model', name: 'llama3', status: 'PASS' }]);
    const window = await open();
    await window.visit(`/pulls/${pull.number}`);
    await window.page.getByText('llama3').first().waitFor(WAIT);
    await outpost.kill();
    try {
      await window.page.getByText(/reconnecting|not up to date/i).first().waitFor(WAIT);
      assert.ok((await window.text()).includes('llama3'));
    } finally {
      await outpost.spawn();
    }
    await window.page.getByText(/Live$/).first().waitFor(WAIT);
    await window.close();
  });

  test('hostile names are shown as plain text', async () => {
    const names = HOSTILE.filter((text) => text.replace(/[\x00-\x20\x7f]/g, '')).slice(0, 120);
    const pull = await opened({ title: names[0], headRef: 'x' });
    const tests = names.map((text, i) => ({ suite: i % 2 ? 'model' : text, name: text, dtype: text, status: i % 3 ? 'FAIL' : 'PASS', message: text, trace: text, file: 'a.py', line: 3 }));
    const job = await report(pull, `turned ${RIGHT_TO_LEFT} around`, tests);
    for (const size of [PHONE, DESK]) {
      const window = await open({ size });
      for (const address of [`/pulls/${pull.number}`, `/jobs/${job}`, '/', '/nightly', '/accelerators/chip']) {
        await window.visit(address);
        const strange = await window.page.evaluate((origin) => [...document.querySelectorAll('main a[href], main img, main iframe, main script, main form, main object, main svg a, main style')]
          .filter((one) => !(one.tagName === 'A' && (one.href.startsWith(origin) || /^https:\/\/(github\.com|ci\.example)\//.test(one.href)))).map((one) => one.outerHTML.slice(0, 200)), outpost.url);
        assert.deepEqual(strange.filter((html) => /evil|octocat|alert/.test(html)), [], address);
        assert.ok(!(await window.page.title()).includes(RIGHT_TO_LEFT), address);
        assert.ok(await window.overflow() <= 0, `${address}, ${size.width} px: ${await window.overflow()} px overflow`);
      }
      window.clean();
      await window.close();
    }
  });

  test('an open page shows a growing log, opens an address of a line, and searches the log', async () => {
    const pull = await opened();
    const job = await report(pull, 'logged', [], 'in_progress');
    const put = (body) => outpost.request('PUT', `/api/v1/jobs/${job}/log`, { body, headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' } });
    const lines = Array.from({ length: 5000 }, (_, i) => (i === 3210 ? '\x1b[31mRuntimeError: no kernel for aten::foo\x1b[0m' : `line ${i + 1} of the log`));
    assert.equal((await put(`${lines.join('\n')}\n`)).status, 200);
    const window = await open();
    await window.visit(`/jobs/${job}#L3200`);
    await window.page.getByText('line 3200 of the log').first().waitFor(WAIT);
    await window.page.getByText('no kernel for aten::foo').first().waitFor(WAIT);
    await window.page.getByRole('searchbox', { name: /log/i }).fill('line 42 of');
    await window.page.keyboard.press('Enter');
    await window.page.getByText('line 42 of the log').first().waitFor(WAIT);
    assert.ok(await window.page.locator('main *').count() < 8000, 'the page contains only the visible lines');
    window.clean();
    await window.close();
  });
});

describe('a fresh install', { skip: notBuilt || noBrowser }, () => {
  test('says how to continue', async () => {
    const [browser, rig] = await Promise.all([launch(), startRig()]);
    const outpost = await Outpost.start({ rig });
    try {
      for (const size of [PHONE, DESK]) {
        const window = await Window.open(browser, { origin: outpost.url, size });
        for (const address of ['/', '/nightly', '/platforms']) {
          await window.visit(address);
          assert.match(await window.text(), /accelerator|platform/i, address);
          assert.deepEqual(await window.violations(), [], address);
        }
        window.clean();
        await window.close();
      }
    } finally {
      await browser.close();
      await outpost.close();
      await rig.close();
    }
  });
});
