// A history with known truth, played to a daemon through its real interface. The demo shows it, and the tests of the pages use it.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { startIssuer } from '../../tests/github/oidc.mjs';
import { Clock } from '../../tests/history/clock.mjs';
import { Github } from '../../tests/history/github.mjs';
import { Play } from '../../tests/history/play.mjs';
import { DAY, HOUR, World } from '../../tests/history/world.mjs';
import { Outpost } from '../../tests/integration/lib/outpost.mjs';
import { accelerators, CRON, MUST_PASS, TESTS, TITLES, WORDS } from './catalogue.mjs';
import { documents } from './documents.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const SLOT = HOUR; // what lies nearer together happens at once
const LAG = 3 * HOUR; // the history ends so long ago: its clock must not be ahead of the machine's

// The platform blocks are those that come with Outpost.
function platformOf(name) {
  const file = path.join(root, 'config/platforms', `${name}.yml`);
  return existsSync(file) ? parse(readFileSync(file, 'utf8')) : {};
}

function files(world, vendor) {
  return world.accelerators.map(({ name, title, vendor: company, level, isGithub, every }) => {
    const { platform, links } = platformOf(name);
    return {
      name, title, vendor: company, level, oncall: ['octocat'], links: links ?? { docs: 'https://pytorch.org/docs' }, ...(platform && { platform }),
      runners: [isGithub ? { name: 'ci', github: { repository: `vendors/${name}` } } : { name: 'lab', webhook: { url: vendor, secret: 'hook' } }],
      triggers: { pull_request: {}, push: { branches: ['main'], ...(every && { every }) }, schedule: [CRON[name]] },
      deadlines: { ...(!isGithub && { acknowledge: '1h' }), start: '14h', finish: '20h' },
      tests: { must_pass: MUST_PASS },
    };
  });
}

// Its clock files and log go to `folder`. The daemon still runs when this comes back; close() ends what is around it, and it
// as well unless it has been stopped.
export async function playHistory({ folder, days, port, program, say = () => {} }) {
  const start = Date.now() - days * DAY - LAG;
  const world = new World({ seed: 2026, days, pulls: days * 2, tests: TESTS.length, start, catalogue: { accelerators: accelerators(start, DAY), tests: TESTS, titles: TITLES, words: WORDS } });
  const releases = new Map(world.accelerators.map(({ name }) => [name, platformOf(name).platform?.install.find(({ build }) => build === 'stable')?.torch]));
  const clock = new Clock(folder, start - HOUR);
  const play = new Play({ world, clock, slot: SLOT, say, documents: documents(world, releases), hasStarts: true, isCut: true, hasSchedules: true });
  const [github, issuer, vendor] = await Promise.all([
    Github.start(play.project), startIssuer(), play.vendors.start(),
  ]);
  const outpost = await Outpost.start({
    program, rig: github, issuer, port, accelerators: files(world, vendor), clock, logFile: path.join(folder, 'outpostd.log'),
    secrets: Object.fromEntries(world.accelerators.filter(({ isGithub }) => !isGithub).map(({ name }) => [name, { hook: 'hook' }])),
    config: { log: { level: 'warn' }, comment: { min_interval: '60s' }, reconcile: { interval: '1d' } },
  });
  const close = async () => {
    await outpost.stop();
    clock.close();
    await Promise.all([github.close(), issuer.close(), play.vendors.close()]);
  };
  try {
    await play.run({ outpost, github, issuer });
    if (play.problems.length > 0) throw new Error(play.problems.slice(0, 3).join('\n'));
  } catch (error) {
    await close();
    throw error;
  }
  return { outpost, play, world, close };
}
