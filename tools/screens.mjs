// docs/screens anew: each page of a sixty-day history, at phone and desktop width, in light and dark.
//
// usage: node tools/screens.mjs BUILD_FOLDER [OUT [DAYS]]   (make screens)
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const build = path.resolve(process.argv[2] ?? path.join(root, 'build/release'));
const out = path.resolve(process.argv[3] ?? path.join(root, 'docs/screens'));
const days = Number(process.argv[4] ?? 60);
process.env.OUTPOSTD = path.join(build, 'outpostd');
process.env.OUTPOSTCTL = path.join(build, 'outpostctl');
const [{ playHistory }, { DESK, launch, PHONE, Window }] = await Promise.all([import('../demo/history/play.mjs'), import('../tests/browser/browser.mjs')]);

const TALLEST = 2400; // a picture shows the beginning, and the page the rest

// The pull request that shows most: new failures and explained ones.
async function pullOf({ outpost, play }) {
  let best = [0];
  for (const number of play.project.byNumber.keys()) {
    const { verdicts, state } = await outpost.api(`pulls/${number}`);
    const kinds = new Set(verdicts.map(({ attribution }) => attribution).filter(Boolean));
    const worth = kinds.size * 10 + (kinds.has('NEW') ? 5 : 0) + (state === 'open' ? 3 : 0);
    if (worth > best[0]) best = [worth, number];
  }
  return best[1];
}

async function pathsOf(story) {
  const { newest } = await story.outpost.api('dashboard');
  const { jobs } = await story.outpost.api('accelerators/ascend-npu');
  const job = jobs.find(({ kind, verdict }) => kind === 'nightly' && verdict === 'FAIL') ?? jobs.find(({ kind }) => kind === 'nightly') ?? jobs[0];
  return {
    dashboard: '/', pull: `/pulls/${await pullOf(story)}`, commit: `/commits/${newest.sha}`, accelerator: '/accelerators/ascend-npu', job: `/jobs/${job.id}`,
    nightly: '/nightly', platforms: '/platforms', platform: '/platforms/ascend-npu', missing: '/pulls/999999',
  };
}

const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-screens-'));
const [browser, story] = await Promise.all([launch(), playHistory({ folder, days })]);
try {
  await fs.mkdir(out, { recursive: true });
  const paths = await pathsOf(story);
  for (const theme of ['light', 'dark']) {
    for (const size of [DESK, PHONE]) {
      const window = await Window.open(browser, { origin: story.outpost.url, size, theme });
      for (const [name, address] of Object.entries(paths)) {
        await window.visit(address);
        await window.page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
        const height = Math.min(TALLEST, await window.page.evaluate(() => document.documentElement.scrollHeight));
        await window.page.setViewportSize({ width: size.width, height: Math.max(size.height, height) });
        await window.page.screenshot({ path: path.join(out, `${name}-${size.width}-${theme}.png`) });
        await window.page.setViewportSize(size);
      }
      await window.close();
    }
  }
  console.log(`${Object.keys(paths).length * 4} pictures in ${path.relative(process.cwd(), out)}`);
} finally {
  await browser.close();
  await story.close();
  await fs.rm(story.outpost.dir, { recursive: true, force: true });
  await fs.rm(folder, { recursive: true, force: true });
}
