// First contentful paint of each page, and the first paint of the page's own content, by Chromium's own clock from the request on.
// The browser is warm: scripts and styles are in its cache, and the connection is open. Pages take turns, so that quiet moments of
// the machine favour none.
//
// Also the longest freezes of a job page whose log has a million lines, while it is read and scrolled.
//
//   node tests/bench/paint.mjs [BUILD_FOLDER] [--json] [--loads N] [--days N] [--url ORIGIN]
//
// Without --url it uses the history of the browser tests, otherwise a running server.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals: [build] } = parseArgs({ allowPositionals: true, options: { json: { type: 'boolean' }, loads: { type: 'string' }, days: { type: 'string' }, url: { type: 'string' } } });
if (build) process.env.OUTPOSTD ??= path.resolve(build, 'outpostd');
if (build) process.env.OUTPOSTCTL ??= path.resolve(build, 'outpostctl');

const [{ playHistory }, { launch, noBrowser, Window }, { LINES, startMillionLines }] = await Promise.all([import('../../demo/history/play.mjs'), import('../browser/browser.mjs'), import('../browser/million-lines.mjs')]);
if (noBrowser) throw new Error(noBrowser);

const AIM_MS = 100;
const STILL_AIM_MS = 500; // for one task
const LOADS = Number(values.loads ?? 15);
const WARM = 2; // loads of each page before the measurement

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
const say = (text) => { if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`); };

async function api(origin, what) {
  const answer = await fetch(`${origin}/api/v1/${what}`);
  if (!answer.ok) throw new Error(`${what} is ${answer.status}`);
  return answer.json();
}

// The paths of pages, found by following the answers.
async function pathsOf(origin) {
  const [{ newest }, { accelerators: [{ name }] }, { platforms: [platform] }] = await Promise.all(['dashboard', 'accelerators', 'platforms'].map((what) => api(origin, what)));
  const { jobs } = await api(origin, `accelerators/${name}`);
  const pull = jobs.find(({ number }) => number);
  return {
    dashboard: '/', ...(pull && { pull: `/pulls/${pull.number}` }), ...(newest && { commit: `/commits/${newest.sha}` }), accelerator: `/accelerators/${name}`,
    ...(jobs.length > 0 && { job: `/jobs/${(jobs.find(({ kind }) => kind === 'nightly') ?? jobs[0]).id}` }),
    nightly: '/nightly', platforms: '/platforms', platform: `/platforms/${platform.name}`, missing: '/pulls/999999999',
  };
}

// Runs in the page. The header may be painted before the page's own script runs, so it also finds the first paint of the page's own
// content.
async function paintsOf() {
  const entry = (type, pick) => new Promise((resolve) => {
    const seen = new PerformanceObserver((list) => {
      const found = list.getEntries().find(pick);
      if (found) { seen.disconnect(); resolve(found.startTime); }
    });
    seen.observe({ type, buffered: true });
  });
  const first = await entry('paint', ({ name }) => name === 'first-contentful-paint');
  const content = await entry('largest-contentful-paint', ({ element }) => element?.closest('main'));
  const [{ responseStart, decodedBodySize }] = performance.getEntriesByType('navigation');
  return { first, content, answered: responseStart, bytes: decodedBodySize, elements: document.querySelectorAll('*').length };
}

async function measure(origin) {
  const paths = await pathsOf(origin);
  const browser = await launch();
  const times = new Map(Object.keys(paths).map((name) => [name, []]));
  try {
    const window = await Window.open(browser, { origin });
    for (let round = -WARM; round < LOADS; round++) {
      say(`round ${round + WARM + 1} of ${LOADS + WARM}`);
      for (const [name, address] of Object.entries(paths)) {
        await window.visit(address);
        const paints = await window.page.evaluate(paintsOf);
        if (round >= 0) times.get(name).push(paints);
      }
    }
    if (window.problems.length > 0) throw new Error(window.problems.join('\n'));
  } finally {
    await browser.close();
  }
  say('');
  return [...times].map(([name, all]) => ({ name, path: paths[name], ...Object.fromEntries(Object.keys(all[0]).map((key) => [key, median(all.map((one) => one[key]))])), worst: Math.max(...all.map(({ content }) => content)) }));
}

function table(pages) {
  const ms = (value) => value.toFixed(0).padStart(7);
  const head = `${''.padEnd(12)}  first content   worst  answered     KiB  elements`;
  return [head, ...pages.map((one) => `${one.name.padEnd(12)}${ms(one.first)} ${ms(one.content)} ${ms(one.worst)} ${one.answered.toFixed(1).padStart(9)} ${(one.bytes / 1024).toFixed(1).padStart(7)} ${String(one.elements).padStart(9)}`)].join('\n');
}

async function onHistory() {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-paint-'));
  say('writing a history');
  const { outpost, close } = await playHistory({ folder, days: Number(values.days ?? 6) });
  try {
    return await measure(outpost.url);
  } finally {
    await close();
    await fs.rm(outpost.dir, { recursive: true, force: true });
    await fs.rm(folder, { recursive: true, force: true });
  }
}

// The longest tasks of the page, ms: while the log is read, and while it is scrolled.
async function stills() {
  say('a log of a million lines');
  const { outpost, address, close } = await startMillionLines();
  const browser = await launch();
  try {
    const window = await Window.open(browser, { origin: outpost.url });
    await window.page.addInitScript(() => {
      const tasks = [];
      const put = (entries) => tasks.push(...entries.map(({ duration }) => Math.round(duration)));
      const observer = new PerformanceObserver((list) => put(list.getEntries()));
      observer.observe({ type: 'longtask' });
      window.longestTask = () => { put(observer.takeRecords()); return Math.max(0, ...tasks.splice(0)); };
    });
    const longest = () => window.page.evaluate(() => window.longestTask());
    await window.visit(address);
    await window.page.locator('.log-foot', { hasText: /^1,000,000 lines, / }).waitFor();
    const reading = await longest();
    const drawn = (n) => window.page.locator(`.log-number[data-n="${n}"]`).waitFor();
    for (const isWrapped of [false, true]) {
      if (isWrapped) await window.page.getByRole('button', { name: 'Wrap' }).click();
      await window.page.locator('.log-view').focus();
      for (const [key, n] of [['End', LINES], ['Home', 1]]) {
        await window.page.keyboard.press(key);
        await drawn(n);
      }
    }
    const going = await longest();
    say('');
    return { reading, going };
  } finally {
    await browser.close();
    await close();
  }
}

const pages = values.url ? await measure(values.url) : await onHistory();
const log = values.url ? undefined : await stills();
if (values.json) console.log(JSON.stringify({ loads: LOADS, aim_ms: AIM_MS, pages, log, still_aim_ms: STILL_AIM_MS }, null, 2));
else console.log(`medians of ${LOADS} loads, ms from the request on; expected: content ≤ ${AIM_MS}; worst is that of content\n\n${table(pages)}`);
if (log && !values.json) console.log(`\na log of a million lines: the page stands still for at most ${log.reading} ms while it is read, ${log.going} ms while one goes through it; expected: ≤ ${STILL_AIM_MS}`);
