// How far an accelerator is from its next level, as a checklist. Pure: tests/web/level.test.mjs.
import { count, duration, percent } from './format.js';

const NEXT = { L2: 'L3', L3: 'L4' };

const CRITERIA = [
  { name: 'push_runs', word: 'pushes run in 30 days', value: (n) => n.push_runs, least: true, format: count },
  { name: 'pass_rate', word: 'pushes green', value: (n) => n.pass_rate, least: true, format: percent },
  { name: 'deadlines_met', word: 'deadlines met', value: (n) => n.deadlines_met, least: true, format: percent },
  { name: 'queue_time', word: 'nine of ten start within', value: (n) => n.queue_p90, format: duration },
  { name: 'run_time', word: 'nine of ten run for', value: (n) => n.run_p90, format: duration },
  { name: 'reaction_time', word: 'from told of a break to green, on average', value: (n) => n.reaction_time, format: duration },
];

// {next: level | null, rows: [{name, word, value, demand, met}], unmetNow: [name]}; next null: there is none above, and
// the rows are what the present level demands.
export function checklist({ level, numbers, thresholds, proposal, overdue }) {
  const next = NEXT[level] ?? null;
  const demanded = thresholds[next ?? level];
  if (!demanded) return { next: null, rows: [], unmetNow: [] };
  const unmet = new Set(next ? proposal.unmet : proposal.unmet_now);
  const rows = CRITERIA.filter(({ name, least }) => demanded[name] != null && (least || demanded[name] > 0)).map(({ name, word, value, least, format }) => ({
    name, word, value: format(value(numbers)), demand: `${least ? 'at least' : 'at most'} ${format(demanded[name])}`, met: !unmet.has(name),
  }));
  rows.push({ name: 'overdue', word: 'not red for more than 72 hours', value: overdue ? 'red for longer' : 'kept', demand: 'always', met: !unmet.has('overdue') });
  return { next, rows, unmetNow: proposal.unmet_now };
}

const WORDS = { ...Object.fromEntries(CRITERIA.map(({ name, word }) => [name, word])), overdue: 'not red for more than 72 hours' };
export const criterionWord = (name) => WORDS[name] ?? name.replaceAll('_', ' ');
