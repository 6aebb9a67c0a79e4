// A log of a hundred megabytes and a million lines in a real browser: it is read to its end, is gone through from end to end,
// looked into and linked into, and the page stays small and never stands still for long.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { notBuilt, Outpost } from '../integration/lib/outpost.mjs';
import { launch, noBrowser, Window } from './browser.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const MIB = 2 ** 20;
const LINES = 1_000_000;
const LINE_BYTES = 110;
const WAIT = { timeout: 60_000 };

const ERROR_LINE = 777_777;
const LATE_LINE = 999_000;
const NAMED_LINE = 900_000;
const SPECIAL = new Map([
  [ERROR_LINE, '\x1b[31mRuntimeError: no kernel for aten::addmm\x1b[0m'],
  [LATE_LINE, 'the one line that speaks of a zebra'],
]);

// Bounds with room: they tell a page that grows with the log from one that does not, and hold on a busy machine.
const ROWS_MAX = 150;
const ELEMENTS_MAX = 2000;
const HEAP_MAX = 64 * MIB; // 32 MiB of the log are kept, and what a page needs besides
const STILL_MAX_MS = 500; // one task

const lineOf = (n) => (SPECIAL.get(n) ?? `${n % 50 ? '' : '\x1b[32m'}test/test_ops.py::TestCommonDevice::test_out_warning_nn_functional_${n} PASSED [${Math.floor(n * 100 / LINES)}%]${n % 50 ? '' : '\x1b[0m'}`).padEnd(LINE_BYTES - 1, '.');

function logOf() {
  const log = Buffer.alloc(LINES * LINE_BYTES, '\n');
  for (let n = 1; n <= LINES; n++) log.write(lineOf(n), (n - 1) * LINE_BYTES, 'latin1');
  return log;
}

describe('a log of a million lines', { skip: notBuilt || noBrowser }, () => {
  let browser;
  let rig;
  let lab;
  let outpost;
  let address;

  // The job's page is at `address`, its log is whole.
  async function loggedJob() {
    const token = (await outpost.ctl('token', 'issue', 'chip')).stdout.trim();
    const pull = rig.openPull(UPSTREAM, { number: 100, association: 'CONTRIBUTOR' });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const view = await outpost.waitForApi('pulls/100', ({ accelerators }) => accelerators[0]?.dispatches.length > 0, WAIT);
    const answer = await post(`${outpost.url}/api/v1/dispatches/${view.accelerators[0].dispatches[0].id}/jobs`, token, workflowOf({ workflow: 'ci', job: 'all', run_id: '1', conclusion: 'failure' }, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const put = await outpost.request('PUT', `/api/v1/jobs/${answer.body.job}/log`, { body: logOf(), timeout: 60_000, headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' } });
    assert.deepEqual([put.status, put.json?.bytes], [200, LINES * LINE_BYTES], put.text);
    return `/jobs/${answer.body.job}`;
  }

  before(async () => {
    [browser, rig, lab] = await Promise.all([launch(), startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      secrets: { chip: { hook: SECRET } },
    });
    address = await loggedJob();
  });

  after(async () => {
    await browser?.close();
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  // What makes it stand still is written down.
  async function open() {
    const window = await Window.open(browser, { origin: outpost.url });
    await window.page.addInitScript(() => {
      const stills = [];
      const put = (entries) => stills.push(...entries.map(({ duration }) => Math.round(duration)));
      const observer = new PerformanceObserver((list) => put(list.getEntries()));
      observer.observe({ type: 'longtask' });
      window.stillsOf = () => { put(observer.takeRecords()); return stills; };
    });
    return window;
  }

  const row = (window, n) => window.page.locator(`.log-line:has(> .log-number[data-n="${n}"])`);
  const foot = (window, text) => window.page.locator('.log-foot', { hasText: text }).waitFor(WAIT);
  const isRead = (window) => foot(window, /^1,000,000 lines, /);

  async function seen(window, n) {
    await row(window, n).waitFor(WAIT);
    await window.page.waitForFunction(([n, text]) => document.querySelector(`.log-number[data-n="${n}"]`)?.parentElement.querySelector('.log-text')?.textContent.startsWith(text), [n, lineOf(n).replace(/\x1b\[\d+m/g, '').replace(/\.+$/, '')], WAIT);
    const { top, bottom, height } = await row(window, n).evaluate((element) => {
      const box = element.closest('.log-view').getBoundingClientRect();
      const { top, bottom } = element.getBoundingClientRect();
      return { top: top - box.top, bottom: box.bottom - bottom, height: box.height };
    });
    const where = `line ${n} is ${top} px below the upper edge, and ${bottom} px above the lower of ${height}`;
    assert.ok(top >= -1 && bottom >= -1, where);
    if (n === LINES) assert.ok(bottom < 2, `nothing is below the last: ${where}`);
  }

  // The page is small, and has never stood still for long.
  async function small(window) {
    const { rows, elements, stills } = await window.page.evaluate(() => ({ rows: document.querySelectorAll('.log-line').length, elements: document.querySelectorAll('*').length, stills: window.stillsOf() }));
    assert.ok(rows > 10 && rows <= ROWS_MAX, `${rows} lines are in the page`);
    assert.ok(elements <= ELEMENTS_MAX, `${elements} elements are in the page`);
    assert.deepEqual(stills.filter((ms) => ms > STILL_MAX_MS), [], `it stood still for ${stills.join(', ')} ms`);
    window.clean();
  }

  // Until a line about there is at the top of what is drawn, with its text.
  const about = (window, n, by = 200) => window.page.waitForFunction(([n, by]) => {
    const line = document.querySelector('.log-line:nth-child(10)');
    return Math.abs(Number(line.querySelector('.log-number').dataset.n) - n) < by && line.querySelector('.log-text')?.textContent;
  }, [n, by], WAIT);

  test('it is read to its end, and gone through from end to end', async () => {
    const window = await open();
    await window.visit(address);
    await seen(window, 1);
    await isRead(window);
    await small(window);
    const view = window.page.locator('.log-view');
    for (const isWrapped of [false, true]) {
      if (isWrapped) await window.page.getByRole('button', { name: 'Wrap' }).click();
      await view.focus();
      await window.page.keyboard.press('End');
      await seen(window, LINES);
      await window.page.keyboard.press('Home');
      await seen(window, 1);
      for (const share of [.25, .9, .01, .7]) {
        await view.evaluate((element, share) => { element.scrollTop = share * (element.scrollHeight - element.clientHeight); }, share);
        await about(window, Math.round(share * LINES));
      }
      await small(window);
    }
    await window.close();
  });

  test('with the wheel one comes to its end, and to nothing below', async () => {
    const window = await open();
    await window.visit(address);
    await isRead(window);
    await window.page.getByRole('textbox', { name: 'Go to line' }).fill(String(LINES - 500));
    await window.page.keyboard.press('Enter');
    await seen(window, LINES - 500);
    await window.page.locator('.log-view').hover();
    const topOf = () => window.page.evaluate(() => Number(document.querySelector('.log-line .log-number').dataset.n));
    for (let top = await topOf(), isAtEnd = false; !isAtEnd; top = await topOf()) {
      await window.page.mouse.wheel(0, 700);
      isAtEnd = await window.page.waitForFunction(([top, last]) => {
        if (Number(document.querySelector('.log-line:last-child .log-number').dataset.n) === last) return 'end';
        return Number(document.querySelector('.log-line .log-number').dataset.n) > top && 'on';
      }, [top, LINES], WAIT).then((handle) => handle.jsonValue()) === 'end';
    }
    await window.page.mouse.wheel(0, 5000);
    await seen(window, LINES);
    await small(window);
    await window.close();
  });

  test('a page that stalls while the browser scrolls still comes to the end', async () => {
    const window = await open();
    await window.visit(address);
    await isRead(window);
    await window.page.locator('.log-view').evaluate((element) => element.addEventListener('scroll', () => {
      for (const end = performance.now() + 300; performance.now() < end;);
    }));
    await window.page.locator('.log-view').focus();
    for (const [key, line] of [['End', LINES], ['Home', 1]]) {
      await window.page.keyboard.press(key);
      await seen(window, line);
    }
    window.clean();
    await window.close();
  });

  test('an address leads to its line, the last one too', async () => {
    const window = await open();
    for (const n of [NAMED_LINE, LINES]) {
      await window.visit(`${address}#L${n}`);
      await seen(window, n);
      assert.equal(await row(window, n).evaluate((element) => element.classList.contains('is-picked')), true);
      await isRead(window);
      await seen(window, n);
      await small(window);
      await window.page.goto('about:blank'); // the next is a page of its own, not a place in this one
    }
    await window.close();
  });

  test('the first error is shown as soon as it is read, and stays', async () => {
    const window = await open();
    const devtools = await window.context.newCDPSession(window.page);
    // Reading takes some seconds, so that the button is pressed in the midst of it.
    await devtools.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: 25 * MIB, uploadThroughput: -1 });
    await window.visit(address);
    await window.page.getByRole('button', { name: 'First error' }).click();
    await seen(window, ERROR_LINE);
    await isRead(window);
    await seen(window, ERROR_LINE);
    await window.page.getByText('1 of 1 line that looks like an error').waitFor(WAIT);
    await small(window);
    await window.close();
  });

  test('what is looked for is found, near the end too', async () => {
    const window = await open();
    await window.visit(address);
    await isRead(window);
    await window.page.getByRole('searchbox', { name: /log/i }).fill('a zebra');
    await seen(window, LATE_LINE);
    await window.page.getByText('1 of 1 line found').waitFor(WAIT);
    await window.page.getByRole('searchbox', { name: /log/i }).fill('passed');
    await window.page.getByText(/of 100,000\+ lines found$/).waitFor(WAIT);
    await window.page.keyboard.press('Enter');
    await small(window);
    const devtools = await window.context.newCDPSession(window.page);
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize, backingStorageSize = 0 } = await devtools.send('Runtime.getHeapUsage');
    assert.ok(usedSize + backingStorageSize <= HEAP_MAX, `${((usedSize + backingStorageSize) / MIB).toFixed(1)} MiB are held`);
    await window.close();
  });
});
