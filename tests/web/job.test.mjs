// The rows and sentences that the pages of jobs, periodic runs and platforms derive from API answers.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { describe, test } from 'node:test';
import { blameText, experimentSentence, extensionText, filterTests, groupTests, jobSentence, otherFacts, uniqueTests } from '../../web/src/job_rows.js';
import { View } from '../../web/src/log/scroll.js';
import { apiOf, daysInWords, nightlySentence, splitCells, withFilter } from '../../web/src/nightly_rows.js';
import { choiceFromUrl, choiceOf, chosen, entriesOf, firstChoice, matching, nearest, optionsOf, urlOfChoice, whyNone } from '../../web/src/platform_choice.js';

const T = (suite, name, status, rest = {}) => ({ suite, name, status, dtype: null, message: null, ...rest });

describe('a job', () => {
  const tests = [T('zeta', 'z', 'PASS'), T('unit', 'b', 'PASS'), T('unit', 'a', 'FAIL', { message: 'NaN' }), T('alpha', 'x', 'MISS'), T('build', 'wheel', 'PASS'), T('unit', 'c', 'ERROR'), T('benchmark', 'm', 'DONE', { dtype: 'bf16' })];

  test('suites with red tests come first, then the others in a fixed order (B10)', () => {
    const groups = groupTests(tests);
    assert.deepEqual(groups.map(({ suite }) => suite), ['unit', 'alpha', 'build', 'benchmark', 'zeta']);
    assert.deepEqual(groups[0].tests.map(({ name }) => name), ['a', 'c', 'b']);
    assert.deepEqual(groups[0].counts, { PASS: 1, FAIL: 1, ERROR: 1 });
  });

  test('a test must match all filters; the text filter searches names, dtypes and messages', () => {
    const names = (filter) => filterTests(tests, { q: '', status: '', suite: '', ...filter }).map(({ name }) => name);
    assert.deepEqual(names({ q: 'nan' }), ['a']);
    assert.deepEqual(names({ q: 'BF16' }), ['m']);
    assert.deepEqual(names({ status: 'red' }), ['a', 'x', 'c']);
    assert.deepEqual(names({ status: 'red', suite: 'unit' }), ['a', 'c']);
    assert.deepEqual(names({ q: 'unit/', status: 'PASS' }), ['b']);
  });

  test('the page counts red tests by attribution', () => {
    const of = (status, attribution) => ({ status, attribution });
    assert.equal(blameText([of('FAIL', 'NEW'), of('ERROR', 'FLAKY'), of('MISS', 'NEW'), of('PASS', null)]), 'Of its red tests, 2 are new and 1 is flaky');
    assert.equal(blameText([of('FAIL', null), of('PASS', null)]), '');
  });

  test('a test that arrives twice is listed once', () => {
    assert.equal(uniqueTests([...tests, ...tests, T('unit', 'a', 'PASS', { dtype: 'fp16' })]).length, tests.length + 1);
  });

  test('the sentence counts the reported tests, even if the job\'s conclusion contradicts them', () => {
    const job = { status: 'completed', conclusion: 'failure', test_results: { passed: 6, failed: 3, skipped: 0, total: 9 } };
    assert.equal(jobSentence(job), 'This job failed: 3 of 9 tests did not pass');
    assert.match(jobSentence({ ...job, conclusion: 'success' }), /^3 of 9 tests did not pass, though/);
    assert.equal(jobSentence({ ...job, conclusion: 'cancelled', test_results: null }), 'This job was cancelled');
    assert.equal(jobSentence({ status: 'in_progress' }), 'This job is running');
    assert.equal(jobSentence({ status: 'completed', conclusion: 'success', test_results: { failed: 0, total: 1 } }), 'This job passed: its one test is not red');
  });

  test('a nested environment becomes a flat list', () => {
    assert.deepEqual(otherFacts({ device: 'x', cann: '8.2', nodes: { count: 2, tags: ['a', null] }, ok: false, none: null }), [['cann', '8.2'], ['nodes.count', '2'], ['nodes.tags.0', 'a'], ['ok', 'false']]);
    assert.deepEqual(otherFacts(null), []);
    assert.equal(extensionText({ name: 'torch_npu', version: '2.8' }), 'torch_npu 2.8');
    assert.equal(extensionText('x 1'), 'x 1');
    assert.equal(extensionText({}), null);
  });
});

describe('the scroll position of a log', () => {
  const viewOf = (lines, more) => Object.assign(new View(), { lines, height: 600, ...more });

  test('a short log scrolls like ordinary text', () => {
    const view = viewOf(1000);
    view.scrolled(0, 4005);
    assert.deepEqual([view.top, view.offset], [200, 5]);
    assert.equal(view.scrollTop, 4005);
    view.scrolled(4005, view.tall - view.height);
    assert.equal(view.isAtEnd, true);
    assert.equal(view.drawn[1], 1000);
  });

  test('each of a million lines can be reached, and small steps move by few lines', () => {
    const view = viewOf(1_000_000);
    assert.equal(view.isDirect, false);
    const room = view.tall - view.height;
    for (const line of [0, 1, 499_999, 987_654]) {
      view.show(line);
      const [from, to] = view.drawn;
      assert.ok(from <= line && line < to);
      assert.ok(view.scrollTop >= 0 && view.scrollTop <= room);
    }
    const { top } = view;
    view.scrolled(view.scrollTop, view.scrollTop + 40);
    assert.equal(view.top, top + 2);
    view.scrolled(1000, 0);
    assert.deepEqual([view.top, view.offset], [0, 0]);
    view.scrolled(0, room);
    assert.equal(view.isAtEnd, true);
    view.scrolled(room, room / 2);
    assert.ok(Math.abs(view.top - 500_000) < 100);
  });

  test('with wrapped lines, steps follow the drawn heights', () => {
    const view = viewOf(10, { isWrapped: true, height: 100 });
    view.move(250, (line) => (line === 0 ? 200 : 40));
    assert.deepEqual([view.top, view.offset], [2, 10]);
    view.move(-60, () => 40);
    assert.deepEqual([view.top, view.offset], [0, 30]);
    view.move(-500, () => 40);
    assert.deepEqual([view.top, view.offset], [0, 0]);
  });
});

describe('periodic runs', () => {
  test('only the known filters of the address go to the API', () => {
    assert.equal(apiOf(''), '/api/v1/nightly');
    assert.equal(apiOf('?state=fixed&x=1&q=a%26b&suite='), '/api/v1/nightly?state=fixed&q=a%26b');
    assert.equal(withFilter('?state=fixed&cursor=abc', 'q', 'x y'), '?state=fixed&q=x+y');
    assert.equal(withFilter('?state=fixed', 'state', ''), '');
  });

  test('one sentence summarizes the newest periodic runs', () => {
    const accelerators = [{}];
    assert.equal(nightlySentence({ counts: { regression: 1, still_failing: 2, passing: 9 }, accelerators }).text, '1 regression, 2 still failing in the newest periodic runs');
    assert.equal(nightlySentence({ counts: { passing: 9, fixed: 1 }, accelerators }).tone, 'pass');
    assert.equal(nightlySentence({ counts: {}, accelerators: [] }).text, 'No periodic runs yet');
    assert.equal(nightlySentence({ counts: { unstable: 1 }, accelerators }).tone, 'error');
  });

  test('rows that need attention come first', () => {
    const [prominent, quiet] = splitCells(['passing', 'fixed', 'regression', 'skipped', 'unstable'].map((state) => ({ state })));
    assert.deepEqual(prominent.map(({ state }) => state), ['regression', 'unstable', 'fixed']);
    assert.deepEqual(quiet.map(({ state }) => state), ['passing', 'skipped']);
    assert.equal(daysInWords([{ status: 'FAIL' }, null, { status: 'ERROR' }, { status: 'PASS' }]), '2 red, 1 green');
    assert.equal(daysInWords([null]), 'no result');
  });
});

describe('the choice of an installation', () => {
  const way = (build, torch, os, pack, platform, language, offered = true) => ({ build, torch, os, package: pack, platform, language, commands: ['x'], note: null, offered, why_not: offered ? null : 'must-pass tests are red' });
  const platforms = [
    { name: 'cpu', title: 'CPU', install: [way('stable', '2.9.1', 'linux', 'pip', null, 'python'), way('stable', '2.10.0', 'linux', 'pip', null, 'python'), way('stable', '2.9.1', 'macos', 'pip', null, 'python'), way('stable', '2.9.1', 'linux', 'libtorch', null, 'cpp')] },
    { name: 'npu', title: 'NPU', install: [way('stable', '2.8.0', 'linux', 'pip', 'CANN 8.2', 'python', false), way('nightly', null, 'linux', 'pip', 'CANN 8.2', 'python')] },
  ];
  const entries = entriesOf(platforms);
  const cpu = { build: 'stable', os: 'linux', package: 'pip', platform: 'cpu', version: '', language: 'python' };

  test('the first choice is an offered one on the reader’s system', () => {
    assert.deepEqual(firstChoice(entries, {}, 'linux'), cpu);
    assert.equal(firstChoice(entries, {}, 'macos').os, 'macos');
    assert.equal(firstChoice(entries, {}, 'windows').os, 'linux');
    assert.equal(firstChoice([], {}, 'linux'), null);
  });

  test('the address names all or part of a choice, which is kept even if no entry matches', () => {
    assert.deepEqual(choiceFromUrl(urlOfChoice(cpu)), Object.fromEntries(Object.entries(cpu).filter(([, value]) => value)));
    assert.equal(firstChoice(entries, { platform: 'npu' }, 'linux').version, 'CANN 8.2');
    const none = firstChoice(entries, { platform: 'npu', os: 'windows' }, 'linux');
    assert.deepEqual([none.platform, none.os], ['npu', 'windows']);
  });

  test('the newest offered release comes first', () => {
    assert.deepEqual(matching(entries, cpu).map(({ torch }) => torch), ['2.10.0', '2.9.1']);
  });

  test('the code in docs/platforms.md for pytorch.org finds the same entry', async () => {
    const page = await fs.readFile(new URL('../../docs/platforms.md', import.meta.url), 'utf8');
    const [, code] = /(function command[^]*?\n})\n/.exec(page);
    const way = (torch, offered) => ({ build: 'stable', torch, os: 'linux', package: 'pip', platform: null, language: 'python', offered, why_not: `${torch} is red`, commands: [`install ${torch}`, 'done'] });
    const answer = (...install) => new Function('platforms', `${code}; return command('stable', 'linux', 'pip', 'npu', null, 'python');`)([{ name: 'npu', install }]);
    for (const [install, expected] of [
      [[], 'There is no such combination.'], [[way('2.9.1', true), way('2.10.0', true)], 'install 2.10.0\ndone'],
      [[way('2.10.0', false), way('2.9.1', true)], 'install 2.9.1\ndone'], [[way('2.9.1', false), way('2.10.0', false)], 'Not offered: 2.10.0 is red.'],
    ]) {
      assert.equal(answer(...install), expected);
      const [first] = matching(entriesOf([{ name: 'npu', install }]), { build: 'stable', os: 'linux', package: 'pip', platform: 'npu', version: '', language: 'python' });
      if (first) assert.ok(expected.includes(first.torch));
    }
  });

  test('each value says whether it is available with the other choices', () => {
    assert.deepEqual(optionsOf(entries, cpu, 'os', ['linux', 'macos', 'windows']).map(({ state }) => state), ['offered', 'offered', 'none']);
    const [, npu] = optionsOf(entries, cpu, 'platform', ['cpu', 'npu']);
    assert.deepEqual([npu.state, npu.why], ['not offered', 'must-pass tests are red']);
  });

  test('choosing another platform also chooses its version', () => {
    const npu = chosen(entries, cpu, 'platform', 'npu');
    assert.equal(npu.version, 'CANN 8.2');
    assert.equal(matching(entries, npu).length, 1);
    assert.deepEqual(chosen(entries, cpu, 'os', 'windows'), { ...cpu, os: 'windows' });
  });

  test('an unavailable choice says why and names the nearest one', () => {
    const choice = { ...cpu, os: 'windows' };
    assert.equal(whyNone(entries, choice, 'CPU'), 'CPU is available for Linux and macOS, not for Windows.');
    assert.match(whyNone(entries, { ...cpu, package: 'libtorch' }, 'CPU'), /^CPU is not available as LibTorch for Linux, Python, Stable\.$/);
    assert.equal(choiceOf(nearest(entries, choice, ['platform'])).os, 'linux');
  });
});

test('the sentence of an experiment\'s run names its side and its purpose', () => {
  const job = (experiment) => ({ number: 7, accelerator: 'npu', experiment: { side: 'base', cause: 'auto', round: 1, state: 'done', reason: null, ...experiment } });
  assert.equal(experimentSentence(job({})), 'Failed tests ran again, to find the cause of the failures, on the merge base of pull request #7 on npu. Its results are evidence; they are not results of the pull request.');
  assert.equal(experimentSentence(job({ cause: 'stress', round: 3, side: 'head' })), 'A member asked for these runs of one test. This is run 3, on the head of pull request #7 on npu. Its results are evidence; they are not results of the pull request.');
  assert.match(experimentSentence(job({ state: 'void', reason: 'it tested another commit' })), /Its results do not count: it tested another commit\.$/);
  assert.match(experimentSentence({ ...job({}), number: null }), /on the merge base on npu/);
});
