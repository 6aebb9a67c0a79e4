// Compares Outpost's verdict of each red cell with the truth: the matrix and the targets. README.md defines the shares.
import { isSpecific, sameness } from './messages.mjs';
import { DAY, HOUR } from './world.mjs';

export const TRUTHS = ['guilty', 'both', 'unsettled', 'base', 'flaky', 'infra', 'outage', 'no result'];
export const VERDICTS = ['KNOWN', 'BASE', 'FLAKY', 'NEW', 'UNCLASSIFIED'];
const DISTANCE = 20; // attribution.distance
const WINDOW = 7 * DAY; // attribution.window
const PATIENCE = 12 * HOUR; // the limit of an experiment

// The limits: a minimum or maximum in percent, or a maximum number.
export const TARGETS = {
  with: { excused: 0, everExcused: 0, flaky: 97, base: 97, infraNew: 1, unclassified: 2, extra: 12, delay: 2 },
  without: { excused: 0, everExcused: 0, flaky: 60, base: 90, infraNew: 5, unclassified: 25, delay: 2 },
};

const isAlike = (red, cause) => red?.truth && red.status === cause.status && sameness(red.cause) === sameness(cause);

// True if runs of the branch alone show that this red job is the base's: the merge base itself failed with the same message and
// never passed, or the nearest runs on both sides of it failed so.
function isShownByBranch(play, { head, accelerator, test, at }, { job, cause }) {
  const runs = play.record.tested.get(accelerator).filter((run) => run.at <= at && run.branch === head.base.branch && Math.abs(run.index - head.base.index) <= DISTANCE);
  const outcome = (run) => run.jobs.get(`${test} ${job}`);
  const here = runs.filter(({ index }) => index === head.base.index);
  if (here.some((run) => outcome(run)?.status === 'PASS')) return false;
  if (here.length > 0) return here.some((run) => isAlike(outcome(run), cause));
  const before = runs.filter(({ index }) => index < head.base.index).sort((a, b) => b.index - a.index || b.at - a.at)[0];
  const after = runs.filter(({ index }) => index > head.base.index).sort((a, b) => a.index - b.index || b.at - a.at)[0];
  return Boolean(before && after) && isAlike(outcome(before), cause) && isAlike(outcome(after), cause);
}

// True if reports alone show that this red job is flaky: it passed in another attempt on this commit. The same failure on other
// changes is not evidence, because a change may break a flaky test permanently with its usual message.
function isShownFlaky(play, { head, accelerator, test }, { job }) {
  const where = `${accelerator} ${test} ${job}`;
  const mine = (play.record.failures.get(where) ?? []).findLast((one) => one.sha === head.sha);
  return (play.record.passes.get(`${head.sha} ${where}`) ?? []).some((then) => Math.abs(mine.at - then) < WINDOW);
}

// A flaky test that also failed on the merge base was red before the change, so BASE is correct.
function failedOnBase(play, { head, accelerator, test, at, result }) {
  const runs = [...play.record.tested.get(accelerator), ...play.record.rerunOnBase.get(accelerator) ?? []].filter((run) => run.at <= at && run.branch === head.base.branch && run.index === head.base.index);
  return result.reds.every(({ job, cause }) => runs.some((run) => isAlike(run.jobs.get(`${test} ${job}`), cause)));
}

// True if the head stayed, and its vendor answered, for the limit of an experiment.
function hadTime(play, { head, accelerator, at }) {
  const reported = play.record.reported.get(`${head.sha} ${accelerator}`);
  const vendor = play.world.accelerators.find(({ name }) => name === accelerator);
  const isAway = vendor.outages.some(({ from, to }) => from < reported + PATIENCE && to > reported);
  return at - reported >= PATIENCE && !isAway;
}

// True if UNCLASSIFIED is the only possible verdict: NEW requires a green merge base and BASE the same message there, but the merge
// base is unknown, or the pull request and the merge base break the test with different messages.
function isOpenByDefinition(play, { head, pull, accelerator: name, test, result }) {
  if (pull.isUnknown) return ['guilty', 'base'].includes(result.truth);
  const accelerator = play.world.accelerators.find((one) => one.name === name);
  const guilty = result.reds.filter(({ truth }) => truth === 'guilty');
  return guilty.length > 0 && guilty.every(({ job }) => play.world.brokenOnBase(accelerator, head, test, job));
}

function recognisable(play, mode, cell) {
  const { truth, reds } = cell.result;
  const isEvery = (shown) => reds.every((red) => shown(play, cell, red));
  if (mode === 'with') return hadTime(play, cell) && (truth !== 'base' || !cell.pull.isUnknown);
  return truth === 'base' ? !cell.pull.isUnknown && isEvery(isShownByBranch) : isEvery(isShownFlaky);
}

const last = (cell) => cell.verdicts.at(-1).verdict;
const share = (all, right) => ({ n: all.length, hits: all.filter(right).length, missed: all.filter((cell) => !right(cell)) });

// One line with everything about a cell.
function storyOf(play, cell) {
  const { pull, head, accelerator, test, result, verdicts } = cell;
  const around = play.record.tested.get(accelerator).filter((run) => run.branch === head.base.branch && Math.abs(run.index - head.base.index) <= DISTANCE).sort((a, b) => b.index - a.index)
    .map(({ index, jobs }) => `${head.base.index - index}${[...jobs].filter(([key]) => key.startsWith(`${test} `)).map(([, one]) => (one.truth ? (isAlike(one, result.cause) ? 'r' : 'x') : one.status === 'PASS' ? 'g' : 's')).join('')}`).join(' ');
  const history = verdicts.map(({ at, verdict, truth, reason, evidence }) => `${new Date(at).toISOString().slice(5, 16)} ${verdict} of ${truth}${reason ? ` (${reason})` : ''}${evidence ? ` ${evidence}` : ''}`).join('; ');
  const experiments = play.record.experiments.filter((one) => one.head === head && one.accelerator.name === accelerator && one.tests.includes(test)).map(({ side, at }) => `${side} ${new Date(at).toISOString().slice(5, 16)}`).join(', ');
  return `#${pull.number} (${pull.kind}, by ${pull.author}, to ${pull.to}, base ${head.base.index}${pull.isUnknown ? ', unknown' : ''}) ${accelerator} ${test}: truth ${result.truth} in ${result.reds.map(({ job }) => job).join(', ')} (${JSON.stringify(result.message)}); verdicts ${history}; experiments: ${experiments || 'none'}; around the base: ${around}`;
}

// The wrong verdicts and their reasons without numbers, with their counts.
function reasons({ missed }) {
  const tally = new Map();
  for (const cell of missed) {
    const { verdict, reason = '' } = cell.verdicts.at(-1);
    const why = `${verdict}: ${reason.replace(/\b[0-9a-f]{7}\b/g, '…').replace(/\d+ (commits?|others?)/g, 'n $1')} [${isSpecific(cell.result.cause ?? { template: '' }) ? 'specific' : 'vague'}]`;
    tally.set(why, (tally.get(why) ?? 0) + 1);
  }
  return [...tally].sort((a, b) => b[1] - a[1]).map(([why, n]) => `  ${String(n).padStart(4)} ${why}`);
}

// → figures that add up over seeds: {matrix, excused, everExcused, flaky, base, infraNew, unclassified, extra, delays}, stories, and the verdicts of each red cell
export function judge(play, mode) {
  const cells = [...play.record.cells.values()].filter(({ verdicts }) => verdicts.length > 0);
  const reds = cells.filter(({ status }) => status !== 'MISS');
  const of = (...truths) => reds.filter(({ result }) => truths.includes(result.truth));
  const recognised = (truth) => of(truth).filter((cell) => recognisable(play, mode, cell));
  const flaky = share(recognised('flaky'), (cell) => last(cell) === 'FLAKY' || (last(cell) === 'BASE' && failedOnBase(play, cell)));
  const flakyOfAll = share(of('flaky'), (cell) => last(cell) === 'FLAKY' || (last(cell) === 'BASE' && failedOnBase(play, cell)));
  const base = share(recognised('base'), (cell) => last(cell) === 'BASE');
  const infra = share(of('infra', 'outage'), (cell) => last(cell) !== 'NEW');
  // Without experiments only a message shows that a machine is bad, and a message is not an excuse.
  const open = reds.filter((cell) => isOpenByDefinition(play, cell));
  const settled = reds.filter((cell) => !open.includes(cell) && (mode === 'with' ? hadTime(play, cell) : !['infra', 'outage'].includes(cell.result.truth)));
  const isClassified = (cell) => last(cell) !== 'UNCLASSIFIED';
  const classified = share(settled, isClassified), classifiedOfAll = share(reds, isClassified), openByDefinition = share(open, isClassified);
  const matrix = Object.fromEntries(TRUTHS.map((truth) => [truth, Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0]))]));
  for (const cell of cells) matrix[cell.status === 'MISS' ? 'no result' : cell.result.truth][last(cell)]++;
  const finally_ = of('guilty').filter((cell) => ['KNOWN', 'BASE', 'FLAKY'].includes(last(cell)));
  const extra = [...play.record.extra.values()].reduce((sum, n) => sum + n, 0);
  return {
    mode, matrix, excused: finally_.length, everExcused: play.record.excused.length, nGuilty: of('guilty').length, flaky, flakyOfAll, base, infra, classified, classifiedOfAll, openByDefinition,
    extra: { tests: extra, heads: play.record.redHeads.size, experiments: play.record.experiments.length }, delays: play.record.delays,
    stories: {
      excused: play.record.excused.map(({ key, where, verdict, truth, reason, pull, message }) => { const cell = play.record.cells.get(key); return `${truth} and ${where} shows ${verdict}${reason ? ` (${reason})` : ''}: ${cell ? storyOf(play, cell) : `#${pull.number} ${key} ${JSON.stringify(message)}`}`; }),
      flaky: flaky.missed.map((cell) => storyOf(play, cell)), base: base.missed.map((cell) => storyOf(play, cell)), infra: infra.missed.map((cell) => storyOf(play, cell)), classified: classified.missed.map((cell) => storyOf(play, cell)),
    },
    verdicts: cells.map(({ key, verdicts }) => ({ key, verdicts })).sort((a, b) => (a.key < b.key ? -1 : 1)),
    reasons: { flaky: reasons(flaky), base: reasons(base), infra: reasons(infra), classified: reasons(classified) },
  };
}

const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);
const percentOf = (n, all) => (all === 0 ? undefined : (100 * n) / all);

// The targets over several histories of one mode. → [{name, value, text, expected, holds}]
export function targets(list, mode) {
  const expected = TARGETS[mode];
  const pool = (name) => ({ n: sum(list, (one) => one[name].n), hits: sum(list, (one) => one[name].hits) });
  const rate = (name, pooled, least) => { const value = percentOf(pooled.hits, pooled.n); return { name, text: value === undefined ? 'none' : `${value.toFixed(1)} % of ${pooled.n}`, expected: `≥ ${least} %`, holds: value === undefined || value >= least }; };
  const miss = (name, pooled, most) => { const value = percentOf(pooled.n - pooled.hits, pooled.n); return { name, text: value === undefined ? 'none' : `${value.toFixed(1)} % of ${pooled.n}`, expected: `≤ ${most} %`, holds: value === undefined || value <= most }; };
  const count = (name, value, most) => ({ name, text: `${value} of ${sum(list, (one) => one.nGuilty)}`, expected: String(most), holds: value <= most });
  const delays = list.flatMap((one) => one.delays).sort((a, b) => a - b);
  const p90 = delays[Math.floor(delays.length * 0.9)] ?? 0;
  const heads = sum(list, (one) => one.extra.heads), extra = heads ? sum(list, (one) => one.extra.tests) / heads : 0;
  return [
    count('guilty cells excused, final verdict', sum(list, (one) => one.excused), expected.excused),
    count('guilty cells excused in any version', sum(list, (one) => one.everExcused), expected.everExcused),
    rate('flakes recognised', pool('flaky'), expected.flaky),
    { ...rate('  of all flaky cells', pool('flakyOfAll'), 0), expected: '' },
    rate('base breakages recognised', pool('base'), expected.base),
    miss('infrastructure failures called NEW', pool('infra'), expected.infraNew),
    miss('unclassified', pool('classified'), expected.unclassified),
    { ...miss('  no verdict is possible, by definition', pool('openByDefinition'), 100), expected: '' },
    { ...miss('  of all red cells', pool('classifiedOfAll'), 100), expected: '' },
    ...(expected.extra ? [{ name: 'extra tests per head with red tests', text: `${extra.toFixed(1)} for ${heads} heads`, expected: `≤ ${expected.extra}`, holds: extra <= expected.extra }] : []),
    { name: 'last report to final comment, p90', text: `${p90.toFixed(1)} s of ${delays.length}`, expected: `≤ ${expected.delay} s`, holds: p90 <= expected.delay },
  ];
}

export function matrixText(list) {
  const count = (truth, verdict) => sum(list, ({ matrix }) => matrix[truth][verdict]);
  const rows = [['truth', ...VERDICTS], ...TRUTHS.map((truth) => [truth, ...VERDICTS.map((verdict) => String(count(truth, verdict)))])];
  return rows.map(([first, ...rest]) => first.padEnd(14) + rest.map((text) => text.padStart(14)).join('')).join('\n');
}

export const targetsText = (found) => found.map(({ name, text, expected, holds }) => `${holds ? '  ' : '! '}${name.padEnd(40)}${text.padStart(22)}   ${expected}`).join('\n');
