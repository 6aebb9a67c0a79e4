// The texts for an accelerator's state and its suites. The server decides the state and its words
// (src/model/accelerator_state.h); only ages are added here, because they grow while a page is open.
// Pure: tests/web/dashboard.test.mjs.
import { roughly } from './format.js';

// "red for 2 d, not counted", "silent for 9 d", "no report for 20 min"
export function stateText({ text, since, notes }, now) {
  const age = since ? ` for ${roughly(Math.max(0, (now - Date.parse(since)) / 1000))}` : '';
  return [`${text}${age}`, ...notes].join(', ');
}

// The content of a suite's cell: {status, text, title}
export function suiteCell({ status, tests, red }) {
  const nRed = tests.fail + tests.error + tests.miss;
  const total = nRed + tests.pass + tests.done + tests.skip;
  const words = [['fail', 'failed'], ['error', 'broke'], ['miss', 'without a result'], ['pass', 'passed'], ['done', 'measured'], ['skip', 'skipped']];
  const title = words.filter(([key]) => tests[key]).map(([key, word]) => `${tests[key].toLocaleString('en-US')} ${word}`).join(', ');
  if (!nRed) return { status, text: (tests.pass || tests.done || tests.skip).toLocaleString('en-US'), note: '', title };
  return { status, text: nRed.toLocaleString('en-US'), note: red === 0 ? 'explained' : `of ${total.toLocaleString('en-US')} red`, title: red === nRed ? title : `${title}; ${red} not explained` };
}
