// The requirements of an accelerator's next level, as a checklist. Pure: tests/web/level.test.mjs.
import { duration, percent } from './format.js';

const WORDS = {
  tenure: 'at L2 or above for',
  data: 'time since its first job that counts',
  end_to_end_time: 'median end-to-end time',
  overrun_rate: 'jobs that ran for more than 3 hours',
  queue_time: 'mean queue time',
  timeout_rate: 'jobs that timed out',
  pass_rate: 'jobs that passed',
  deadlines_met: 'deadlines met',
  reaction_time: 'mean time to recovery',
  maintainers: 'the decision of PyTorch’s core maintainers',
};
export const criterionWord = (name) => WORDS[name] ?? name.replaceAll('_', ' ');

const amount = ({ unit }, value) => (unit === 'share' ? percent(value) : duration(value));

function rowOf(one) {
  if (one.name === 'maintainers') return { name: one.name, word: criterionWord(one.name), value: '—', required: 'required', met: null };
  const differs = one.measured != null && one.with_upstream != null && Math.abs(one.with_upstream - one.measured) > 0.0005;
  return {
    name: one.name, word: criterionWord(one.name), met: one.met,
    value: `${amount(one, one.measured)}${differs ? ` (${amount(one, one.with_upstream)} with upstream’s failures)` : ''}`,
    required: `${one.at_least ? 'at least' : 'less than'} ${amount(one, one.target)}`,
  };
}

// {next: level | null, days, jobs, upstream, rows: [{name, word, value, required, met: true | false | null}], unmetNow: [name]}; next null:
// the level is the highest, and the rows are its own requirements.
export function checklist({ criteria, proposal }) {
  const shown = criteria.up ?? criteria.down;
  if (!shown) return { next: null, days: 0, jobs: 0, upstream: 0, rows: [], unmetNow: [] };
  return { next: criteria.up?.level ?? null, days: shown.days, jobs: shown.jobs, upstream: shown.failed_upstream, rows: shown.list.map(rowOf), unmetNow: proposal.unmet_now };
}
