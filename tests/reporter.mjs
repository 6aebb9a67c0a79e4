// A node:test reporter for one file: a line for each test, the whole error of each failed test, and as its last line the counts as
// JSON, which run-programs.mjs reads.
import { readFileSync, writeSync } from 'node:fs';
import { inspect } from 'node:util';

const OF_PARENTS = ['subtestsFailed', 'testAborted'];
const COUNTS = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
const indent = (text) => text.replace(/^/gm, '    ');

// Processor seconds of this process and of all its ended children.
function cpuSeconds() {
  try {
    const [utime, stime, cutime, cstime] = readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /s, '').split(' ').slice(11, 15).map(Number);
    return (utime + stime + cutime + cstime) / 100;
  } catch {
    return undefined;
  }
}

export default async function* report(events) {
  const names = []; // names of the tests around the current one
  const counts = { passed: 0, failed: 0, skipped: 0 };
  // --test-force-exit ends the process before this function ends.
  process.on('exit', () => writeSync(1, `${JSON.stringify({ ...counts, cpu: cpuSeconds() })}\n`));
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      names[data.nesting] = data.name;
    } else if (type === 'test:pass' || type === 'test:fail') {
      const name = [...names.slice(0, data.nesting), data.name].join(' > ');
      const seconds = `${(data.details.duration_ms / 1000).toFixed(1).padStart(6)} s`;
      const isSuite = data.details.type === 'suite';
      if (data.skip !== undefined) {
        counts.skipped++;
        yield `skipped ${seconds}  ${name}${typeof data.skip === 'string' ? ` (${data.skip})` : ''}\n`;
      } else if (type === 'test:pass') {
        if (!isSuite) counts.passed++;
        yield `ok      ${seconds}  ${name}\n`;
      } else {
        const { error } = data.details;
        if (OF_PARENTS.includes(error?.failureType)) continue;
        counts.failed++;
        const cause = error?.cause ?? error;
        yield `FAIL    ${seconds}  ${name}\n${indent(cause?.stack ? inspect(cause) : String(cause))}\n`;
      }
    } else if (type === 'test:diagnostic' && !(data.nesting === 0 && COUNTS.test(data.message))) {
      yield `        ${data.message}\n`;
    } else if (type === 'test:stdout' || type === 'test:stderr') {
      yield data.message;
    }
  }
}
