// Every state has a symbol and a word: nothing relies on colour. Pure.

// How a test ended (KCIDB's words), and "running" for what has not.
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

// How a periodic run ended.
export const OUTCOME = {
  green: { symbol: '✓', word: 'green', tone: 'pass' },
  red: { symbol: '✗', word: 'red', tone: 'fail' },
  failed: { symbol: '!', word: 'failed to run', tone: 'error' },
  missed: { symbol: '?', word: 'missed', tone: 'miss' },
  skipped: { symbol: '–', word: 'skipped, nothing new', tone: 'skip' },
  running: { symbol: '…', word: 'running', tone: 'running' },
};

// Why a test is red.
export const ATTRIBUTION = {
  NEW: { word: 'new', text: 'green on the merge base' },
  UNCLASSIFIED: { word: 'not classified', text: 'nothing shows whether this change caused it' },
  BASE: { word: 'base', text: 'red on the merge base, too' },
  KNOWN: { word: 'known', text: 'an issue is registered for it' },
  FLAKY: { word: 'flaky', text: 'it comes and goes' },
};

// What became of the rerun that would help to decide whose failure it is (`rerun`).
export const RERUN = {
  pending: 're-running',
  no_answer: 'rerun got no answer',
  no_room: 'not rerun: no machine time was free',
  void: 'rerun proves nothing',
  no_result: 'rerun gave no result',
  over_limit: 'not rerun: limit reached',
  called_off: 'rerun called off',
};

// As what the server counts a red cell (`group`).
export const GROUP = {
  new: ATTRIBUTION.NEW,
  unclassified: ATTRIBUTION.UNCLASSIFIED,
  base: ATTRIBUTION.BASE,
  known: ATTRIBUTION.KNOWN,
  flaky: ATTRIBUTION.FLAKY,
  missing: { word: '', text: 'no result: for the vendor to look at' },
  not_counted: { word: 'not counted', text: 'the accelerator is unhealthy: it is red on most recent unrelated changes' },
};

// What a dispatch is at.
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

// What a job came to: its conclusion as GitHub names it.
export function jobMark(job) {
  if (job.status === 'in_progress') return STATUS.running;
  const known = { success: STATUS.PASS, failure: STATUS.FAIL, skipped: STATUS.SKIP, neutral: { ...STATUS.DONE, word: 'neutral' } }[job.conclusion];
  return known ?? { ...STATUS.MISS, word: job.conclusion ?? 'no conclusion' };
}
