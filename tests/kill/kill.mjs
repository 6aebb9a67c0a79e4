// Promises 1 and 2: a daemon that is killed repeatedly on a failing network loses no delivery and duplicates no effect. The same
// story is played twice at the same time, undisturbed and disturbed, and both end in the same state.
//
//   node tests/kill/kill.mjs [--kills N] [--deliveries N] [--seed N] [--hangs N] [--rude N] [--share X]
//
// SEED (or --seed) repeats a run as far as timing allows. KEEP=1 keeps the daemon's folder.
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { until } from '../integration/lib/outpost.mjs';
import { differences, judge, openIssues, plain, pulls, shown, unfinished } from './judge.mjs';
import { Stage } from './stage.mjs';
import { writeStory } from './story.mjs';
import { breakGithub, killer, moodyVendor } from './trouble.mjs';

const TROUBLE_ENDS_MS = 900_000; // the longest back-off

async function idle(stage) {
  const { code, stdout } = await stage.outpost.ctl('--json', 'status');
  if (code !== 0) return false;
  const { outbox, deliveries } = JSON.parse(stdout);
  if (outbox.due > 0 || (deliveries?.accepted ?? 0) > 0) return false;
  const { pull } = await stage.outpost.api('status');
  if (pull.queued > 0 || pull.leases > 0) return false;
  // Writes on issues wait behind the comments.
  const { red_since: redSince } = await stage.outpost.api('accelerators/npu');
  return openIssues(stage) === (redSince ? 1 : 0);
}

// Waits for pending effects, and reports missing ones instead of hanging.
async function settle(stage, isDone, timeout) {
  const left = () => unfinished(stage).join('; ');
  try {
    await until(async () => unfinished(stage).length === 0 && await idle(stage) && isDone(), { timeout, interval: 200, what: 'everything has arrived' });
  } catch (error) {
    stage.problems.push(`${error.message} ${left()}`);
  }
}

// Compares the posted comment with the daemon's preview.
async function preview(stage, number) {
  const { stdout } = await stage.outpost.ctl('comment', 'preview', String(number));
  return plain(stdout, stage).trim();
}

// The lines of only one of two texts: "-" where only the undisturbed run shows it, "+" where only the disturbed one does.
function changedLines(undisturbed, disturbed) {
  const [before, after] = [undisturbed.split('\n'), disturbed.split('\n')];
  return [...before.filter((line) => !after.includes(line)).map((line) => `- ${line}`), ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`)].join('\n');
}

async function quietRun(story, { open, begin, width }, say) {
  const stage = await open({ story });
  let end = () => {};
  try {
    await stage.start();
    end = await begin(stage, { isDisturbed: false });
    await stage.play({ width });
    say(`undisturbed: ${stage.delivered} webhooks, ${stage.arrivals.length} requests to vendors`);
    const isWritten = async () => {
      for (const { number } of pulls(story))
        if (plain(stage.comments(number)[0]?.body ?? '', stage).trim() !== await preview(stage, number)) return false;
      // An effect that is delayed for a moment is not `due`.
      return /^outpost_outbox_unsent\{kind="checks"\} 0$/m.test((await stage.outpost.get('/metrics')).text);
    };
    await settle(stage, isWritten, 120_000);
    return {
      problems: [...judge(stage)],
      shown: new Map(pulls(story).map((line) => [line.number, shown(stage, line)])),
    };
  } finally {
    await end();
    await stage.close();
  }
}

// quiet: the result of quietRun(), as a promise
async function brokenRun(story, quiet, { seed, openBroken, begin, disturb, judgeMore, width, patience = TROUBLE_ENDS_MS, ...trouble }, say) {
  const stage = await openBroken({ story, answer: moodyVendor(seed) });
  let end = () => {};
  try {
    await stage.start();
    end = await begin(stage, { isDisturbed: true });
    breakGithub(stage.rig, seed, trouble);
    const [tally] = await Promise.all([disturb(stage, { say }), stage.play({ width })]);
    say(`${Object.entries(tally).map(([what, n]) => `${n} × ${what}`).join(', ')}; ${stage.delivered} webhooks, ${stage.arrivals.length} requests to vendors`);
    stage.rig.clearFaults();
    const { problems: early, shown: expected } = await quiet;
    if (early.length > 0) return early.map((what) => `undisturbed: ${what}`);
    await settle(stage, () => differences(stage, expected).length === 0, patience);
    const problems = [...judge(stage), ...await judgeMore(stage)];
    for (const line of differences(stage, expected))
      problems.push(`#${line.number} differs:\n${changedLines(expected.get(line.number), shown(stage, line))}`);
    return problems;
  } catch (error) {
    say(`the test itself failed: ${error.stack}`); // now, because vendors may go on sending for long
    throw error;
  } finally {
    await end();
    await stage.close();
  }
}

// Plays one story twice at the same time, undisturbed and disturbed. Returns the problems as sentences.
//   write         makes the story
//   open, openBroken   make the stage of the two runs
//   begin(stage, {isDisturbed})  starts what takes part in both runs, and returns a function that ends it
//   disturb(stage, {say})  causes the faults, and returns their number by kind
//   judgeMore(stage)  further problems; trouble: as for breakGithub(); patience: the limit of the end, ms; width: as for Stage.play()
export async function playTwice({ write, open = (options) => Stage.open(options), openBroken = open, begin = async () => () => {}, judgeMore = () => [], width, ...broken }, say) {
  const quiet = quietRun(write(), { open, begin, width }, say);
  const [problems] = await Promise.all([brokenRun(write(), quiet, { openBroken, begin, judgeMore, width, ...broken }, say), quiet]);
  return problems;
}

export function killTest({ seed, kills, deliveries, ...trouble }, say = () => {}) {
  const disturb = (stage) => killer(stage, { seed, kills, onKill: (i) => { if (i % 20 === 0) say(`killed ${i} times, ${stage.delivered} webhooks accepted`); } });
  return playTwice({ seed, write: () => writeStory({ seed, deliveries }), disturb, ...trouble }, say);
}

async function main() {
  const { values } = parseArgs({ options: { kills: { type: 'string' }, deliveries: { type: 'string' }, seed: { type: 'string' }, hangs: { type: 'string' }, rude: { type: 'string' }, share: { type: 'string' } } });
  const options = {
    seed: Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), kills: Number(values.kills ?? 200),
    deliveries: Number(values.deliveries ?? 500), hangs: Number(values.hangs ?? 6), rude: Number(values.rude ?? 0), share: Number(values.share ?? 1),
  };
  const started = Date.now();
  const say = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  say(`seed ${options.seed}: ${options.kills} kills in ${options.deliveries} webhooks`);
  const problems = await killTest(options, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'no delivery lost, no effect duplicated, every comment as in the undisturbed run' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
