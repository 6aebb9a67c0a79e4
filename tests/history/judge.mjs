// What was said of each red cell against the truth: the matrix, and what of it breaks a promise.
import { sameness } from './messages.mjs';
import { DAY, HOUR } from './world.mjs';

const TRUTHS = ['real', 'base', 'both', 'flaky', 'infra', 'outage'];
const SAID = ['KNOWN', 'BASE', 'FLAKY', 'NEW', 'UNCLASSIFIED'];
const NOT_ITS_FAULT = ['KNOWN', 'BASE', 'FLAKY'];
const DISTANCE = 20; // attribution.distance
const WINDOW = 7 * DAY; // attribution.window

// The newest commit of main at or before the merge base that was tested: undefined, or how the test ended there
// (null: it passed).
function onBase(play, { head, accelerator, test, at }) {
  if (head.pull.isUnknown) return undefined;
  const [nearest] = play.said.tested.get(accelerator)
    .filter((run) => run.at <= at && run.index <= head.base.index && head.base.index - run.index <= DISTANCE && !run.others.has(test))
    .sort((a, b) => b.index - a.index || b.at - a.at);
  return nearest && (nearest.reds.get(test) ?? null);
}

const canBeBase = (play, cell) => onBase(play, cell)?.breakage === cell.result.breakage;

const disjoint = (a, b) => !a.some((one) => b.includes(one));

// Whether evidence of flakiness had come within the window: both outcomes on this SHA, or the same words on changes of
// two other authors that touch other files.
function canBeFlaky(play, { head, accelerator, test, result, at }) {
  const failures = play.said.failures.get(`${accelerator} ${test}`) ?? [];
  const mine = failures.findLast((one) => one.sha === head.sha);
  if ((play.said.passes.get(`${head.sha} ${accelerator} ${test}`) ?? []).some((then) => then <= mine.at && mine.at - then < WINDOW)) return true;
  const same = sameness(result);
  if (same === undefined) return false;
  const others = failures.filter((one) => one.same === same && one.at <= at && mine.at - one.at < WINDOW - HOUR && one.at - mine.at < WINDOW - HOUR
    && one.author !== head.author && disjoint(one.files, head.files));
  return new Set(others.map(({ author }) => author)).size >= 2;
}

// A flaky test that failed there as well was red before the change: to say so is right.
const isRedOnBase = (play, cell) => Boolean(onBase(play, cell));

// How the test ended on main around the merge base, newest first, by commits before it: g green, r red from the same
// cause, x red from another.
function around(play, { head, accelerator, test, result, at }) {
  const runs = play.said.tested.get(accelerator).filter((run) => run.at <= at && Math.abs(run.index - head.base.index) <= DISTANCE && !run.others.has(test));
  return runs.sort((a, b) => b.index - a.index).map(({ index, reds }) => {
    const red = reds.get(test);
    const isSame = red?.truth === result.truth && red.word === result.word;
    return `${head.base.index - index}${red ? (isSame ? 'r' : 'x') : 'g'}`;
  }).join(' ');
}

// What else failed so.
function likewise(play, { accelerator, test, result }) {
  const same = sameness(result);
  const others = (play.said.failures.get(`${accelerator} ${test}`) ?? []).filter((one) => same !== undefined && one.same === same);
  return others.slice(-12).map(({ at, sha, author }) => {
    const { pull, base } = play.project.heads.get(sha);
    return `${new Date(at).toISOString().slice(5, 16)} ${pull ? `#${pull.number} (${pull.kind}, base ${base.index})` : `main ${base.index}`} by ${author}`;
  }).join(', ');
}

function tell(play, cell) {
  const { pull, head, accelerator, test, result, said } = cell;
  const about = `${pull.kind}${pull.isUnknown ? ', merge base unknown' : ''}, by ${pull.author}, base ${head.base.index}`;
  const history = said.map(({ at, said: word, truth, reason, evidence }) => `${new Date(at).toISOString().slice(5, 16)} ${word} of ${truth}${reason ? ` (${reason})` : ''}${evidence ? ` ${evidence}` : ''}`).join('; ');
  return `#${pull.number} (${about}) ${accelerator} ${test}: truth ${result.truth} (${result.style ?? ''} ${JSON.stringify(result.message)}); said ${history}; main ${around(play, cell)}; so failed ${likewise(play, cell)}`;
}

function share(name, cells, wanted, least) {
  const right = cells.filter((cell) => wanted.includes(cell.said.at(-1).said));
  const percent = cells.length > 0 ? (100 * right.length) / cells.length : 100;
  return { name, n: cells.length, percent, least, missed: cells.filter((cell) => !right.includes(cell)) };
}

// What was said instead, and why, without the numbers.
function reasons({ missed }) {
  const tally = new Map();
  for (const { said, result } of missed) {
    const { said: word, reason = '' } = said.at(-1);
    const why = `${word}: ${reason.replace(/[0-9a-f]{7}/, '…').replace(/\d+ commits?/, 'n commits')} [${result.style}]`;
    tally.set(why, (tally.get(why) ?? 0) + 1);
  }
  return [...tally].sort((a, b) => b[1] - a[1]).map(([why, n]) => `  ${String(n).padStart(4)} ${why}`);
}

function matrix(cells) {
  const count = (truth, said) => cells.filter((cell) => cell.result.truth === truth && cell.said.at(-1).said === said).length;
  const rows = [['truth \\ said', ...SAID], ...TRUTHS.map((truth) => [truth, ...SAID.map((said) => String(count(truth, said)))])];
  return rows.map(([first, ...rest]) => first.padEnd(14) + rest.map((text) => text.padStart(14)).join('')).join('\n');
}

// → {nReal: red cells; shares: {base, flaky}: {n, missed: [cell]}; slandered, violations: [text]; text({stories})}
export function judge(play) {
  const cells = [...play.said.cells.values()];
  const of = (truth) => cells.filter(({ result }) => result.truth === truth);
  const shares = {
    base: share('base breakages that a run of main shows, said to be BASE', of('base').filter((cell) => canBeBase(play, cell)), ['BASE'], 95),
    flaky: share('flaky failures with evidence, said to be FLAKY', of('flaky').filter((cell) => canBeFlaky(play, cell) && !isRedOnBase(play, cell)), ['FLAKY'], 80),
  };
  // Another attempt may have failed for another reason before or after.
  const slandered = cells.filter(({ said }) => said.some((one) => one.truth === 'real' && NOT_ITS_FAULT.includes(one.said)));
  const violations = [
    ...slandered.map((cell) => `real breakage excused: ${tell(play, cell)}`),
    ...Object.values(shares).filter(({ percent, least }) => percent < least).map(({ name, percent, least }) => `${name}: ${percent.toFixed(1)} %, wanted ${least} %`),
  ];
  const text = ({ stories = false } = {}) => [
    matrix(cells), '',
    ...Object.values(shares).flatMap((one) => [`${one.name}: ${one.percent.toFixed(1)} % of ${one.n} (wanted ${one.least} %)`, ...reasons(one)]),
    ...(stories ? Object.values(shares).flatMap(({ missed }) => missed.map((cell) => `missed: ${tell(play, cell)}`)) : []),
  ].join('\n');
  return { nReal: of('real').length, shares, slandered: violations.slice(0, slandered.length), violations, text };
}
