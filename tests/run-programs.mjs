// Runs files of whole-program tests, the longest first: by the seconds that each took in earlier runs, which FOLDER/seconds.json
// keeps. The files mostly wait, so another one begins whenever the processor has time left; processes of a lower priority
// count as time left. Prints one line for each file when it ends, with its failures, and at the end the first lines of
// every failure again, because a log may be kept only from its end. The output of each file is kept under FOLDER. A file that has
// not ended after PROGRAM_MINUTES (20) is stopped and fails, so that one test cannot block the whole check.
//
// usage: run-programs.mjs AT_MOST FOLDER FILE...
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const LINES_OF_FAILURE = 12; // lines of each failed test in the summary
const MINUTES = Number(process.env.PROGRAM_MINUTES ?? 20);
const LAST_WORDS_MS = 10_000; // from SIGTERM, which lets daemons end, to SIGKILL
const CORES = os.availableParallelism();
const ALWAYS = 2 * CORES; // files at a time on a busy machine
const LOOK_MS = 250; // between two looks at the processor; a new file takes time at once, for node's start
const BUSY = 0.8; // of the processor: no further file begins
const MEMORY_OF_A_FILE = 2 ** 30; // bytes that are available before a further file begins
// These take longest. Without a record they begin first, so that none of them runs alone at the end.
const LONGEST = ['hostile-report', 'history', 'history-days', 'history-modes', 'kill-cluster', 'hostile-comment', 'hostile-registry', 'browser/pages', 'store-copy', 'registry-git', 'buildbot', 'browser/experiments', 'browser/long-log', 'checks', 'upgrade', 'cluster', 'standby', 'cluster-trouble'];

const reporter = fileURLToPath(new URL('reporter.mjs', import.meta.url));
const [most, folder, ...given] = process.argv.slice(2);
const atMost = Number(most);
const nameOf = (file) => path.relative('tests', file).replace(/^integration\//, '').replace(/\.test\.mjs$/, '');
const record = path.join(folder, 'seconds.json');
const secondsOf = fs.existsSync(record) ? JSON.parse(fs.readFileSync(record, 'utf8')) : {};
const rank = (name) => (LONGEST.includes(name) ? 10_000 - LONGEST.indexOf(name) : 0);
const expected = (file) => secondsOf[nameOf(file)] ?? rank(nameOf(file));
const files = [...given].sort((a, b) => expected(b) - expected(a));

const began = performance.now();
const secondsSince = (start) => ((performance.now() - start) / 1000).toFixed(1);
const running = new Map(); // name → child
const failures = []; // {name, text}
const total = { passed: 0, failed: 0, skipped: 0, cpu: 0 };

// Text of each failed test: its line and the indented ones below.
const failuresIn = (output) => output.split(/^(?=\S)/m).filter((block) => block.startsWith('FAIL '));

function countsOf(output) {
  const last = output.trimEnd().split('\n').at(-1);
  try {
    return { ...JSON.parse(last), isWhole: true };
  } catch {
    return { passed: 0, failed: 0, skipped: 0, cpu: 0, isWhole: false };
  }
}

// Signals the file's process and all its children.
function stop(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function runFile(file) {
  const name = nameOf(file);
  const log = path.join(folder, `${name.replaceAll('/', '-')}.log`);
  const out = fs.openSync(log, 'w');
  const start = performance.now();
  // its own process group, so that a stopped file leaves no daemon behind
  const child = spawn(process.execPath, ['--test-force-exit', '--test-reporter', reporter, '--test-reporter-destination', 'stdout', file], { stdio: ['ignore', out, out], detached: true });
  fs.closeSync(out);
  running.set(name, child);
  const limits = [setTimeout(() => stop(child, 'SIGTERM'), MINUTES * 60_000), setTimeout(() => stop(child, 'SIGKILL'), MINUTES * 60_000 + LAST_WORDS_MS)];
  child.on('error', (error) => fs.appendFileSync(log, `${error.stack}\n`)).on('close', (code, signal) => {
    limits.forEach(clearTimeout);
    running.delete(name);
    const output = fs.readFileSync(log, 'utf8');
    const { isWhole, ...counts } = countsOf(output);
    secondsOf[name] = Number(secondsSince(start));
    const isPassed = code === 0 && isWhole && counts.failed === 0;
    for (const key of Object.keys(total)) total[key] += counts[key] ?? 0;
    console.log(`${isPassed ? 'ok  ' : 'FAIL'}  ${name.padEnd(28)} ${String(counts.passed).padStart(3)} passed${counts.failed ? ` ${counts.failed} failed` : ''}${counts.skipped ? ` ${counts.skipped} skipped` : ''}`
      + `  ${secondsSince(start).padStart(6)} s  cpu ${counts.cpu?.toFixed(1)} s`);
    stop(child, 'SIGKILL'); // a process that the file left behind
    if (!isPassed) {
      const texts = failuresIn(output);
      const isOverdue = performance.now() - start >= MINUTES * 60_000;
      if (isOverdue || texts.length === 0) texts.push(`FAIL    ${isOverdue ? `stopped after ${MINUTES} minutes` : signal ?? `exit ${code}`}\n${output.split('\n').slice(-30).join('\n')}`);
      for (const text of texts) {
        console.log(text.trimEnd());
        failures.push({ name, text });
      }
    }
  });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    console.log(`${signal}; these run still: ${[...running.keys()].join(', ')}`);
    for (const child of running.values()) stop(child, 'SIGTERM');
    process.exit(1);
  });

fs.mkdirSync(folder, { recursive: true });

// The times of all processors so far, in ms: those that a further file could not use, and all.
function processorTimes() {
  const times = os.cpus().map((cpu) => cpu.times);
  const sum = (keys) => times.reduce((total, time) => total + keys.reduce((part, key) => part + time[key], 0), 0);
  return { busy: sum(['user', 'sys', 'irq']), all: sum(['user', 'sys', 'irq', 'nice', 'idle']) };
}

const memoryLeft = () => 1024 * Number(/^MemAvailable: +(\d+)/m.exec(fs.readFileSync('/proc/meminfo', 'utf8'))[1]);

let before = processorTimes();
while (files.length > 0 || running.size > 0) {
  const now = processorTimes();
  const hasTimeLeft = now.busy - before.busy < BUSY * (now.all - before.all) && memoryLeft() > MEMORY_OF_A_FILE;
  before = now;
  while (files.length > 0 && running.size < Math.min(ALWAYS, atMost)) runFile(files.shift());
  if (files.length > 0 && running.size < atMost && hasTimeLeft) runFile(files.shift());
  await sleep(LOOK_MS);
}

fs.writeFileSync(record, JSON.stringify(secondsOf));
if (failures.length > 0) console.log('\n---- failed ----');
for (const { name, text } of failures) {
  const lines = text.trimEnd().split('\n');
  console.log([`${name}: ${lines[0].replace(/^FAIL +([\d.]+ s +)?/, '')}`, ...lines.slice(1, 1 + LINES_OF_FAILURE)].join('\n'));
}
console.log(`${given.length} files in ${secondsSince(began)} s (cpu ${total.cpu.toFixed(0)} s): ${total.passed} tests passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = failures.length > 0 ? 1 : 0;
