// The conditions at the end of a story, even if the daemon was killed many times. Each check yields a sentence for each problem.
import { ASCEND, RUNNERS, UPSTREAM } from './stage.mjs';

// The check runs of the jobs that may have one, by the runner.
const CHECKS = { [ASCEND]: `crcr/${ASCEND}/ci/test`, lab: 'outpost/lab-chip/ci/test' };

const pulls = (story) => story.lines.filter(({ kind }) => kind === 'pull');
const commands = (line) => line.steps.filter(({ command, copyOf }) => command && !copyOf);
const ids = (list) => new Set(list.map(({ id }) => id));

// Removes everything that may differ between two runs: addresses, ids of jobs and dispatches, runs, times, the number of other
// changes with a failure, and the number of failures of a head, because the daemon skips a superseded round.
export function plain(body, stage) {
  return body
    .replaceAll(stage.outpost.url, 'https://outpost')
    .replaceAll(stage.rig.url, 'https://github')
    .replace(/; likely flaky: seen on \d+ other changes?(, and passed again on \d+ of them)?/g, '')
    .replace(/, and red (twice|\d+ times) here|; red again here/g, '')
    .replace(/(: |, )(\[evidence\])/g, ' $2') // a reason that contains a colon is followed by a comma
    .replace(/\/jobs\/\d+/g, '/jobs/N')
    .replace(/\/actions\/runs\/\d+/g, '/actions/runs/N')
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z| UTC)?/g, 'TIME')
    .replace(/\b\d+ (second|minute|hour|day)s?( old)?\b/g, 'AGE');
}

function* checkLine(stage, line) {
  const name = line.kind === 'pull' ? `#${line.number}` : 'main';
  const rounds = new Map(); // head → the number of rounds that each runner may have had
  for (const step of line.steps) {
    if (!step.starts) {
      if (/^retest/.test(step.command) && !step.copyOf) add(step.head, RUNNERS.map(({ where }) => where));
      // A label starts its accelerator once per round.
      if (step.action === 'labeled' && !step.copyOf) add(step.head, ['torch-spyre/torch-spyre']);
      continue;
    }
    // ok-to-test releases a dispatch that was planned before.
    if (step.event !== 'issue_comment') add(step.head, RUNNERS.map(({ where }) => where));
    if (step.wait === 'nothing' || step.wait === 'held') continue;
    for (const where of stage.wants(line, step))
      if (stage.caused(step, where).length === 0) yield `${name} ${step.action ?? step.event} ${step.head.slice(0, 7)} never reached ${where}`;
  }
  function add(head, list) {
    const counts = rounds.get(head) ?? new Map();
    for (const where of list) counts.set(where, (counts.get(where) ?? 0) + 1);
    rounds.set(head, counts);
  }
  for (const [head, counts] of rounds) {
    for (const { where } of RUNNERS) {
      const came = stage.arrivals.filter((one) => one.where === where && one.head === head && !['closed', 'cancel'].includes(one.action));
      const got = new Map(came.map(({ id, original, delivery }) => [id, `${original} by ${delivery}`]));
      if (got.size > (counts.get(where) ?? 0)) yield `${name} ${head.slice(0, 7)}: ${got.size} dispatches to ${where} in ${counts.get(where) ?? 0} rounds: ${[...got.values()].join(', ')}`;
      // A dispatch that had ended starts again with another round.
      const check = CHECKS[where];
      const runs = check ? stage.checks(head, check).length : 0;
      if (runs > (counts.get(where) ?? 0)) yield `${name} ${head.slice(0, 7)}: ${runs} check runs ${check} in ${counts.get(where) ?? 0} rounds`;
    }
  }
}

function* checkPushes(stage) {
  for (const step of stage.story.lines.filter(({ kind }) => kind === 'pushes').flatMap(({ steps }) => steps))
    for (const { where } of RUNNERS.filter(({ pushes }) => pushes)) {
      const got = ids(stage.arrivals.filter((one) => one.where === where && one.head === step.head));
      if (got.size !== 1) yield `push ${step.head.slice(0, 7)}: ${got.size} dispatches to ${where}`;
    }
}

// Each episode has one issue, and each step one comment. A marker identifies them.
function* checkIssues(stage) {
  const count = (texts, pattern) => texts.reduce((all, text) => {
    const [, found] = pattern.exec(text) ?? [];
    return all.set(found, (all.get(found) ?? 0) + 1);
  }, new Map());
  const issues = stage.rig.issues(ASCEND);
  for (const [episode, n] of count(issues.map(({ body }) => body), /^<!-- outpost:red:(\d+) -->$/m))
    if (n !== 1) yield `episode ${episode} has ${n} issues`;
  for (const { number } of issues)
    for (const [step, n] of count(stage.onIssue(number).map(({ body }) => body), /^<!-- outpost:red:(\d+:\w+) -->$/m))
      if (n !== 1) yield `the issue ${number} has ${n} comments of ${step}`;
}

export const openIssues = (stage) => stage.rig.issues(ASCEND).filter(({ state }) => state === 'open').length;

// Only the newest episode may still go on.
function* checkOpenIssues(stage) {
  const open = openIssues(stage);
  if (open > 1) yield `${open} issues are open at once`;
}

// Each command has one reaction and at most one reply.
function* checkCommands(stage, line) {
  for (const step of commands(line)) {
    const [reactions, replies] = [stage.reactions(step).length, stage.replies(step).length];
    if (reactions !== 1) yield `#${line.number}: ${reactions} reactions to ${step.command}`;
    if (replies > 1 || (replies === 0 && !/^retest/.test(step.command))) yield `#${line.number}: ${replies} replies to ${step.command}`;
  }
}

function* checkEnd(stage, line) {
  const name = `#${line.number}`;
  for (const { where, isLabeled } of RUNNERS) {
    if (isLabeled && !line.isLabeled) continue;
    if (!stage.arrivals.some((one) => one.where === where && one.head === line.finalHead)) yield `${name}: ${where} never received the last head`;
  }
  for (const [repository, action] of stage.lastActions(line))
    if (line.isClosed !== (action === 'closed')) yield `${name} is ${line.isClosed ? 'closed' : 'open'}, and the last action at ${repository} is ${action}`;
  // The silent vendor finishes nothing, so all its earlier dispatches must be cancelled.
  const silent = stage.arrivals.filter((one) => one.where === 'silent' && one.number === line.number);
  const cancelled = ids(silent.filter(({ action }) => action === 'cancel'));
  const standing = [...ids(silent.filter(({ action }) => action !== 'cancel'))].filter((id) => !cancelled.has(id));
  if (standing.length !== (line.isClosed ? 0 : 1)) yield `${name}: ${standing.length} dispatches stand at the silent vendor`;
  if (!line.isClosed)
    for (const check of Object.values(CHECKS))
      if (!stage.checks(line.finalHead, check).at(-1)?.conclusion) yield `${name}: ${check} has not concluded`;
  yield* checkCommands(stage, line);
}

// The problems that are left until all pending effects have arrived. The end of the story waits for none.
export function unfinished(stage) {
  return [...pulls(stage.story).flatMap((line) => [...checkEnd(stage, line)]), ...checkPushes(stage)];
}

export function* judge(stage) {
  yield* stage.problems;
  for (const { method, path, what, problems } of stage.rig.violations()) yield `GitHub refuses ${method} ${path} (${what}): ${JSON.stringify(problems)}`;
  const whose = new Map();
  for (const { id, where, head, action } of stage.arrivals) {
    if (action === 'closed') continue; // has the id of the dispatch that it ends, and the head of that time
    const first = whose.get(id);
    if (!first) whose.set(id, { where, head });
    else if (first.where !== where || first.head !== head) yield `dispatch ${id} went to ${first.where} and ${where}`;
  }
  for (const line of stage.story.lines) yield* checkLine(stage, line);
  yield* checkPushes(stage);
  yield* checkIssues(stage);
  yield* checkOpenIssues(stage);
  for (const line of pulls(stage.story)) {
    yield* checkEnd(stage, line);
    const n = stage.comments(line.number).length;
    if (n !== 1) yield `#${line.number} has ${n} comments`;
  }
}

// The final state of a pull request: its comment and the conclusions of its check runs.
export function shown(stage, { number, finalHead, isClosed }) {
  const checks = isClosed ? [] : Object.values(CHECKS).map((name) => stage.checks(finalHead, name).at(-1)).map((run) => `${run?.name} ${run?.conclusion}: ${run?.output.title}`);
  return [plain(stage.comments(number)[0]?.body ?? '', stage), ...checks].join('\n');
}

// The pull requests whose final state differs from an undisturbed run.
export function differences(stage, expected) {
  return pulls(stage.story).filter((line) => shown(stage, line) !== expected.get(line.number));
}

export { pulls, UPSTREAM };
