// A log of a hundred megabytes and a million lines in a real browser: it is read to its end, scrolled, searched and linked, and
// the page stays small. tests/bench/paint.mjs measures how long the page freezes.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { WAIT_MS } from '../github/patience.mjs';
import { notBuilt } from '../integration/lib/outpost.mjs';
import { launch, noBrowser, Window } from './browser.mjs';
import { ERROR_LINE, LATE_LINE, lineOf, LINES, startMillionLines } from './million-lines.mjs';

const MIB = 2 ** 20;
const WAIT = { timeout: WAIT_MS };

const NAMED_LINE = 900_000;

// Generous bounds: they only detect a page that grows with the log.
const ROWS_MAX = 150;
const ELEMENTS_MAX = 2000;
const HEAP_MAX = 64 * MIB; // the page keeps 32 MiB of the log and needs some more memory

describe('a log of a million lines', { skip: notBuilt || noBrowser }, () => {
  let browser;
  let outpost;
  let address;
  let close;
  let reader; // a window that has read the whole log, which takes seconds; each test leaves it as it was

  before(async () => {
    browser = await launch();
    ({ outpost, address, close } = await startMillionLines());
    reader = await open();
    await reader.visit(address);
    await seen(reader, 1);
    await isRead(reader);
  });

  after(async () => {
    await browser?.close();
    await close?.();
  });

  const open = () => Window.open(browser, { origin: outpost.url });
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
    if (n === LINES) assert.ok(bottom < 2, `there is space below the last line: ${where}`);
  }

  async function small(window) {
    const { rows, elements } = await window.page.evaluate(() => ({ rows: document.querySelectorAll('.log-line').length, elements: document.querySelectorAll('*').length }));
    assert.ok(rows > 10 && rows <= ROWS_MAX, `${rows} lines are in the page`);
    assert.ok(elements <= ELEMENTS_MAX, `${elements} elements are in the page`);
    window.clean();
  }

  // Waits until a line near n is at the top with its text.
  const about = (window, n, by = 200) => window.page.waitForFunction(([n, by]) => {
    const line = document.querySelector('.log-line:nth-child(10)');
    return Math.abs(Number(line.querySelector('.log-number').dataset.n) - n) < by && line.querySelector('.log-text')?.textContent;
  }, [n, by], WAIT);

  test('the log is read to its end and can be scrolled from end to end', async () => {
    await small(reader);
    const view = reader.page.locator('.log-view');
    const wrap = reader.page.getByRole('button', { name: 'Wrap' });
    for (const isWrapped of [false, true]) {
      if (isWrapped) await wrap.click();
      await view.focus();
      await reader.page.keyboard.press('End');
      await seen(reader, LINES);
      await reader.page.keyboard.press('Home');
      await seen(reader, 1);
      for (const share of [.25, .9, .01, .7]) {
        await view.evaluate((element, share) => { element.scrollTop = share * (element.scrollHeight - element.clientHeight); }, share);
        await about(reader, Math.round(share * LINES));
      }
      await small(reader);
    }
    await wrap.click();
  });

  test('the wheel reaches the end and no space below it', async () => {
    await reader.page.getByRole('textbox', { name: 'Go to line' }).fill(String(LINES - 500));
    await reader.page.keyboard.press('Enter');
    await seen(reader, LINES - 500);
    await reader.page.locator('.log-view').hover();
    const topOf = () => reader.page.evaluate(() => Number(document.querySelector('.log-line .log-number').dataset.n));
    for (let top = await topOf(), isAtEnd = false; !isAtEnd; top = await topOf()) {
      await reader.page.mouse.wheel(0, 700);
      isAtEnd = await reader.page.waitForFunction(([top, last]) => {
        if (Number(document.querySelector('.log-line:last-child .log-number').dataset.n) === last) return 'end';
        return Number(document.querySelector('.log-line .log-number').dataset.n) > top && 'on';
      }, [top, LINES], WAIT).then((handle) => handle.jsonValue()) === 'end';
    }
    await reader.page.mouse.wheel(0, 5000);
    await seen(reader, LINES);
    await small(reader);
  });

  test('a page that stalls while the browser scrolls still reaches the end', async () => {
    await reader.page.locator('.log-view').evaluate((element) => {
      window.stalling = new AbortController();
      element.addEventListener('scroll', () => { for (const end = performance.now() + 300; performance.now() < end;); }, window.stalling);
    });
    await reader.page.locator('.log-view').focus();
    for (const [key, line] of [['End', LINES], ['Home', 1]]) {
      await reader.page.keyboard.press(key);
      await seen(reader, line);
    }
    await reader.page.evaluate(() => window.stalling.abort());
    reader.clean();
  });

  test('an address opens its line, even the last one', async () => {
    const window = await open();
    for (const n of [NAMED_LINE, LINES]) {
      await window.visit(`${address}#L${n}`);
      await seen(window, n);
      assert.equal(await row(window, n).evaluate((element) => element.classList.contains('is-picked')), true);
      await isRead(window);
      await seen(window, n);
      await small(window);
      await window.page.goto('about:blank'); // so that the next visit loads the page again instead of jumping within it
    }
    await window.close();
  });

  test('the first error is shown as soon as it is read, and stays', async () => {
    const window = await open();
    const devtools = await window.context.newCDPSession(window.page);
    // Reading takes some seconds, so that the button is pressed before it ends.
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

  test('a search finds a line near the end', async () => {
    await reader.page.getByRole('searchbox', { name: /log/i }).fill('a zebra');
    await seen(reader, LATE_LINE);
    await reader.page.getByText('1 of 1 line found').waitFor(WAIT);
    await reader.page.getByRole('searchbox', { name: /log/i }).fill('passed');
    await reader.page.getByText(/of 100,000\+ lines found$/).waitFor(WAIT);
    await reader.page.keyboard.press('Enter');
    await small(reader);
    const devtools = await reader.context.newCDPSession(reader.page);
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize, backingStorageSize = 0 } = await devtools.send('Runtime.getHeapUsage');
    assert.ok(usedSize + backingStorageSize <= HEAP_MAX, `${((usedSize + backingStorageSize) / MIB).toFixed(1)} MiB are in use`);
  });
});
