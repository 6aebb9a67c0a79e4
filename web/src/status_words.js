// Every state has a symbol and a word, so no meaning depends on colour alone. Pure.

// Statuses of tests (KCIDB's words), and "running" for a test that has not ended.
export const STATUS = {
  FAIL: { symbol: '✗', word: 'failed', tone: 'fail' },
  ERROR: { symbol: '!', word: 'the test itself broke', tone: 'error' },
  MISS: { symbol: '?', word: 'no result', tone: 'miss' },
  PASS: { symbol: '✓', word: 'passed', tone: 'pass' },
  DONE: { symbol: '•', word: 'measured only', tone: 'done' },
  SKIP: { symbol: '–', word: 'skipped', tone: 'skip' },
  running: { symbol: '…', word: 'running', tone: 'running' },
};
export const isRed = (status) => status === 'FAIL' || status === 'ERROR' || status === 'MISS';

// Outcomes of periodic runs.
export const OUTCOME = {
  green: { symbol: '✓', word: 'green', tone: 'pass' },
  red: { symbol: '✗', word: 'red', tone: 'fail' },
  failed: { symbol: '!', word: 'failed to run', tone: 'error' },
  missed: { symbol: '?', word: 'missed', tone: 'miss' },
  skipped: { symbol: '–', word: 'skipped, nothing new', tone: 'skip' },
  running: { symbol: '…', word: 'running', tone: 'running' },
};

// Causes of a red test.
export const ATTRIBUTION = {
  NEW: { word: 'new', text: 'green on the merge base' },
  UNCLASSIFIED: { word: 'not classified', text: 'nothing shows whether this change caused it' },
  BASE: { word: 'base', text: 'red on the merge base, too' },
  KNOWN: { word: 'known', text: 'an issue is registered for it' },
  FLAKY: { word: 'flaky', text: 'it passed when it ran again' },
};

// States of the rerun that helps to find the cause of a failure (`rerun`).
export const RERUN = {
  pending: 're-running',
  later: 'rerun waits for a good machine',
  no_answer: 'rerun got no answer',
  no_room: 'not rerun: no machine time was free',
  void: 'rerun proves nothing',
  no_result: 'rerun gave no result',
  over_limit: 'no further rerun: limit reached',
  called_off: 'rerun called off',
};

// The server's groups of red cells (`group`).
export const GROUP = {
  new: ATTRIBUTION.NEW,
  unclassified: ATTRIBUTION.UNCLASSIFIED,
  base: ATTRIBUTION.BASE,
  known: ATTRIBUTION.KNOWN,
  flaky: ATTRIBUTION.FLAKY,
  missing: { word: '', text: 'no result: for the vendor to look at' },
  not_counted: { word: 'not counted', text: 'the accelerator is unhealthy: it is red on most recent unrelated changes' },
};

// States of dispatches.
export const DISPATCH = {
  held: { symbol: '‖', word: 'held', tone: 'miss' },
  queued: { symbol: '…', word: 'queued', tone: 'running' },
  sent: { symbol: '…', word: 'sent', tone: 'running' },
  acknowledged: { symbol: '…', word: 'acknowledged', tone: 'running' },
  running: { symbol: '…', word: 'running', tone: 'running' },
  done: { symbol: '✓', word: 'done', tone: 'plain' },
  superseded: { symbol: '–', word: 'superseded', tone: 'skip' },
  cancelled: { symbol: '–', word: 'cancelled', tone: 'skip' },
  failed: { symbol: '!', word: 'could not be sent', tone: 'error' },
  expired: { symbol: '?', word: 'deadline passed', tone: 'miss' },
};

// Conclusions of jobs, with GitHub's names.
export function jobMark(job) {
  if (job.status === 'in_progress') return STATUS.running;
  const known = { success: STATUS.PASS, failure: STATUS.FAIL, skipped: STATUS.SKIP, neutral: { ...STATUS.DONE, word: 'neutral' } }[job.conclusion];
  return known ?? { ...STATUS.MISS, word: job.conclusion ?? 'no conclusion' };
}
