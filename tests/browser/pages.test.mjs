// Every page in a real browser with a history of some days: its contents match the API, it passes accessibility rules, it works
// by keyboard, and it loads nothing from other origins. The daemon is the one without sanitizers: other tests read the same pages.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { playHistory } from '../../demo/history/play.mjs';
import { notBuilt } from '../integration/lib/outpost.mjs';
import { DESK, launch, NARROW, noBrowser, PHONE, Window } from './browser.mjs';

const plain = (text) => text.replace(/\s+/g, ' ');

describe('the pages', { skip: notBuilt || noBrowser }, () => {
  let browser;
  let story;
  let folder;
  let outpost;
  const paths = {};

  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-pages-'));
    [browser, story] = await Promise.all([launch(), playHistory({ folder, days: 6, program: process.env.OUTPOSTD_RELEASE })]);
    outpost = story.outpost;
    const dashboard = await outpost.api('dashboard');
    const { jobs } = await outpost.api('accelerators/ascend-npu');
    const pull = [...story.play.project.byNumber.values()].findLast(({ head }) => head);
    Object.assign(paths, {
      dashboard: '/', pull: `/pulls/${pull.number}`, commit: `/commits/${dashboard.newest.sha}`, accelerator: '/accelerators/ascend-npu',
      job: `/jobs/${jobs.find(({ kind }) => kind === 'nightly')?.id ?? jobs[0].id}`, nightly: '/nightly', platforms: '/platforms', platform: '/platforms/ascend-npu', missing: '/pulls/999999',
    });
  });

  after(async () => {
    await browser?.close();
    await story?.close();
    if (outpost) await fs.rm(outpost.dir, { recursive: true, force: true });
    if (folder) await fs.rm(folder, { recursive: true, force: true });
  });

  const open = (options) => Window.open(browser, { origin: outpost.url, ...options });

  test('each page is accessible and has no overflow at every width, in light and dark', async () => {
    for (const size of [PHONE, DESK]) {
      const window = await open({ size });
      for (const [name, address] of Object.entries(paths)) {
        await window.page.emulateMedia({ colorScheme: 'light' });
        const response = await window.visit(address);
        for (const theme of ['light', 'dark']) {
          const what = `${name}, ${size.width} px, ${theme}`;
          await window.page.emulateMedia({ colorScheme: theme });
          assert.deepEqual(await window.violations({ isOfColours: theme === 'dark' }), [], what); // the dark theme differs in colours alone
          assert.ok(await window.overflow() <= 0, `${what}: ${await window.overflow()} px overflow`);
        }
        assert.equal(response.status(), name === 'missing' ? 404 : 200, name);
        assert.equal(await window.page.locator('h1').count(), 1, name);
        assert.match(await window.page.title(), /Outpost/, name);
      }
      window.clean();
      await window.close();
    }
  });

  test('the narrowest phone needs no sideways scrolling', async () => {
    const window = await open({ size: NARROW });
    for (const [name, address] of Object.entries(paths)) {
      await window.visit(address);
      assert.ok(await window.overflow() <= 0, `${name}: ${await window.overflow()} px overflow`);
    }
    window.clean();
    await window.close();
  });

  test('a table that continues at the right has a shadow there', async () => {
    const window = await open({ size: PHONE });
    await window.visit('/');
    const box = window.page.locator('#accelerators .scroll');
    assert.ok(await box.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth));
    await box.evaluate((one) => one.scrollIntoView({ block: 'end' }));
    const shade = async () => {
      const { x, y, width, height } = await box.boundingBox();
      return (await window.page.screenshot({ clip: { x: x + width - 5, y: y + height - 6, width: 3, height: 3 } })).toString('base64');
    };
    const before = await shade();
    await box.evaluate((one) => { one.scrollLeft = one.scrollWidth; });
    assert.notEqual(await shade(), before, 'the shadow is gone at the end of the table');
    window.clean();
    await window.close();
  });

  test('choices and counts are visible with forced colours and in print', async () => {
    const window = await open({ forcedColors: 'active' });
    const groundOf = (selector) => window.page.locator(selector).first().evaluate((element) => getComputedStyle(element).backgroundColor);
    await window.visit('/platforms');
    assert.notEqual(await groundOf('.option input:checked + span'), await groundOf('.option input:not(:checked) + span'));
    await window.visit('/nightly');
    assert.notEqual(await groundOf('.chip[aria-pressed=true]'), await groundOf('.chip[aria-pressed=false]'));
    await window.page.emulateMedia({ media: 'print' });
    assert.equal(await window.page.locator('.chips').first().isVisible(), false, 'a printed page has no buttons');
    window.clean();
    await window.close();
  });

  test('every chart is drawn without scrolling to it, for print and screenshots (B12)', async () => {
    const window = await open({});
    await window.visit('/accelerators/ascend-npu');
    await window.page.waitForFunction(() => {
      const plots = [...document.querySelectorAll('.chart .plot')];
      return plots.length > 4 && plots.every((plot) => plot.querySelector('canvas'));
    });
    assert.equal(await window.page.evaluate(() => scrollY), 0);
    window.clean();
    await window.close();
  });

  test('the keyboard reaches everything, and the focus is visible', async () => {
    const window = await open({});
    for (const [name, address] of Object.entries(paths)) {
      await window.visit(address);
      const stops = await window.walk();
      assert.ok(stops.length > 4, `${name}: ${stops.length} stops`);
      assert.match(stops[0].what, /href="#/, `${name}: the first stop skips to the content`);
      for (const { what, hasRing, isVisible } of stops) assert.ok(hasRing && isVisible, `${name}: ${what}`);
    }
    window.clean();
    await window.close();
  });

  test('the dashboard agrees with the API and lists the worst accelerator first', async () => {
    const { accelerators, newest } = await outpost.api('dashboard');
    const window = await open({});
    await window.visit('/');
    const text = plain(await window.text());
    const table = plain(await window.text('#accelerators'));
    const places = accelerators.map(({ title }) => table.indexOf(title));
    assert.ok(places.every((place) => place >= 0), `${places}`);
    assert.deepEqual(places, [...places].sort((a, b) => a - b), 'the accelerators are in the order of the API');
    assert.ok(text.includes(newest.sha.slice(0, 7)), text.slice(0, 500));
    window.clean();
    await window.close();
  });

  test('a change shows every red cell with its reason', async () => {
    const window = await open({});
    for (const { number } of story.play.project.byNumber.values()) {
      const { verdicts, head_sha: sha } = await outpost.api(`pulls/${number}`);
      const red = verdicts.filter(({ attribution }) => attribution);
      if (red.length === 0) continue;
      await window.visit(`/pulls/${number}`);
      const text = plain(await window.text());
      assert.ok(text.includes(sha.slice(0, 7)));
      for (const { test: name } of red) assert.ok(text.includes(name), `${name} on #${number}`);
      break;
    }
    window.clean();
    await window.close();
  });

  test('a job shows its environment, tests and log', async () => {
    const { environment, tests } = await outpost.api(paths.job.slice(1));
    const window = await open({});
    await window.visit(paths.job);
    const text = plain(await window.text());
    for (const value of [environment.device, environment.os, environment.torch]) assert.ok(text.includes(value), value);
    for (const { name } of tests) assert.ok(text.includes(name), name);
    await window.page.getByText(`outpost ${(await outpost.api(paths.accelerator.slice(1))).title} tests`).first().waitFor();
    window.clean();
    await window.close();
  });

  test('the nightly page shows the accelerators and tests of the API', async () => {
    const { accelerators, tests } = await outpost.api('nightly');
    const window = await open({});
    await window.visit('/nightly');
    const text = plain(await window.text());
    for (const { title } of accelerators) assert.ok(text.includes(title), title);
    for (const { name } of tests.slice(0, 5)) assert.ok(text.includes(name), name);
    window.clean();
    await window.close();
  });

  test('the platforms page lists the platforms and gives the command of an offered one', async () => {
    const { platforms } = await outpost.api('platforms');
    const window = await open({});
    await window.visit('/platforms');
    const text = plain(await window.text());
    for (const { title } of platforms) assert.ok(text.includes(title), title);
    const offered = platforms.flatMap(({ install }) => install).filter(({ offered: is }) => is);
    assert.ok(offered.length > 0, 'at least one installation is offered');
    assert.ok(offered.some(({ commands }) => text.includes(plain(commands[0]))), 'the page shows the command of an offered installation');
    window.clean();
    await window.close();
  });

  test('the dashboard loads without a failed request', async () => {
    const window = await open({});
    await window.visit('/');
    assert.deepEqual(window.answers.filter(({ status }) => status >= 400), []);
    const [{ domContentLoadedEventEnd: ready }] = await window.page.evaluate(() => performance.getEntriesByType('navigation').map((entry) => entry.toJSON()));
    assert.ok(ready > 0);
    window.clean();
    await window.close();
  });

  // Except the scripts of charts, which no page waits for.
  test('each page requests all its scripts at once', async () => {
    const window = await open({});
    for (const one of Object.values(paths)) {
      await window.visit(one);
      const { named, loaded } = await window.page.evaluate(() => ({
        named: [...document.querySelectorAll('script[src], link[rel=modulepreload]')].map((one) => one.src ?? one.href),
        loaded: performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.endsWith('.js') && !name.includes('/uPlot')),
      }));
      assert.ok(loaded.length > 2, one);
      assert.deepEqual(loaded.filter((name) => !named.includes(name)), [], one);
    }
    window.clean();
    await window.close();
  });
});
