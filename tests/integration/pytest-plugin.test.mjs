// The pytest plugins that vendors copy. examples/model-validation/outpost_report.py: each red outcome of pytest is red in the
// report. config/client/outpost_tests.py: an experiment runs exactly the listed tests, even if their names are hostile.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const examples = fileURLToPath(new URL('../../examples/model-validation', import.meta.url));
const client = fileURLToPath(new URL('../../config/client', import.meta.url));
const PYTHON = '/usr/bin/python3'; // Debian's python, because it has Debian's pytest
const hasPytest = spawnSync(PYTHON, ['-c', 'import pytest']).status === 0;

describe('the pytest plugin', { skip: !hasPytest && 'python3-pytest is not installed' }, () => {
  let dir;
  before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'plugin-'));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const python = (...args) => spawnSync(PYTHON, args, { cwd: dir, encoding: 'utf8', env: { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1' } });
  const results = () => JSON.parse(readFileSync(path.join(dir, 'o.json'), 'utf8')).tests.map(({ suite, name, status }) => `${status} ${suite}/${name}`);

  test('an error before, during or after a test does not hide it', () => {
    writeFileSync(path.join(dir, 'test_broken.py'), 'import nothing_like_this\n');
    writeFileSync(path.join(dir, 'test_all.py'), `
import pytest

@pytest.fixture
def broken(): raise RuntimeError("no device")
@pytest.fixture
def skips_late():
    yield
    pytest.skip("late")
@pytest.fixture
def breaks_late():
    yield
    raise RuntimeError("cannot free")

@pytest.mark.outpost(suite="model", name="llama3")
def test_model(): pass
def test_broken(broken, skips_late): pass
def test_red(skips_late): assert False
def test_late(breaks_late): pass
@pytest.mark.parametrize("dtype_name", ["bf16"])
def test_typed(dtype_name): pytest.skip("no bf16")
def test_no_number(record_number): record_number(float("nan"), "s")
`);
    const done = python('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'outpost_report', '--outpost-report=o.json', '--continue-on-collection-errors');
    assert.equal(done.status, 1, done.stdout + done.stderr);
    assert.deepEqual(results().sort(), ['ERROR unit/broken', 'ERROR unit/late', 'ERROR unit/test_broken.py', 'FAIL unit/no_number', 'FAIL unit/red', 'PASS model/llama3', 'SKIP unit/typed']);
  });

  test('an experiment runs only the listed tests, with all their dtypes', () => {
    rmSync(path.join(dir, 'test_broken.py'), { force: true });
    writeFileSync(path.join(dir, 'test_all.py'), `
import pytest

@pytest.mark.outpost(suite="model", name="llama3 $(touch ran)")
def test_model(): pass
@pytest.mark.parametrize("dtype_name", ["bf16", "fp32"])
@pytest.mark.parametrize("n", [1, 2])
def test_typed(dtype_name, n): pass
def test_other(): pass
`);
    writeFileSync(path.join(dir, 'list'), 'model/llama3 $(touch ran)\nunit/typed[2]\nunit/typed\n');
    const done = spawnSync(PYTHON, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'outpost_report', '--outpost-report=o.json'], { cwd: dir, encoding: 'utf8', env: { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1', OUTPOST_TESTS: 'list' } });
    assert.equal(done.status, 0, done.stdout + done.stderr);
    assert.deepEqual(results().sort(), ['PASS model/llama3 $(touch ran)', 'PASS unit/typed[2]', 'PASS unit/typed[2]']);
    assert.ok(!existsSync(path.join(dir, 'ran')));
  });

  test('two workers with one test report one result each, and a red one stays red', () => {
    const done = python('-c', `
from types import SimpleNamespace as N
import outpost_report
writer = outpost_report.Writer(N(outpost_environment={}), "o.json")
def report(outcome, worker):
    return N(nodeid="t.py::test_a", outpost_place=("model", "a", "bf16"), node=N(gateway=N(id=worker)), when="call", duration=1.0, user_properties=[],
             skipped=False, failed=outcome == "failed", longrepr="broken")
for outcome, worker in ("failed", "gw0"), ("passed", "gw1"), ("passed", "gw0"):
    writer.pytest_runtest_logreport(report(outcome, worker))
writer.pytest_sessionfinish()
`);
    assert.equal(done.status, 0, done.stderr);
    assert.deepEqual(results(), ['FAIL model/a', 'PASS model/a']);
  });
});

// Names that are shell commands, an expression for `pytest -k`, an option, or longer than Outpost stores.
const HOSTILE = ['$(touch ran)', '`touch ran`', "'; touch ran; '", '"quoted"', 'a b', 'not a or __import__("os").system("touch ran")', '-k', '--rootdir=/', 'x::y', '[z]', '\\\\n', '%s', 'é', '\\u2028', 'l'.repeat(300)];
const SUITE = `
import unittest
import pytest

@pytest.mark.parametrize("value", [${HOSTILE.map((one) => `"""${one.replaceAll('"', '\\"')}"""`).join(', ')}])
def test_hostile(value): pass
class TestOps:
    def test_add(self): assert False
    def test_mul(self): assert False
class Old(unittest.TestCase):
    def test_old(self): pass
def test_add(): pass
`;

describe('the pytest plugin for experiments', { skip: !hasPytest && 'python3-pytest is not installed' }, () => {
  let dir;
  before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'plugin-'));
    mkdirSync(path.join(dir, 'tests/deep'), { recursive: true });
    writeFileSync(path.join(dir, 'tests/deep/test_all.py'), SUITE);
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  // Runs pytest and returns the tests that Outpost reads from its JUnit file.
  const run = (list, ...args) => {
    writeFileSync(path.join(dir, 'list'), (list ?? []).map((one) => `${one}\n`).join(''));
    rmSync(path.join(dir, 'o.xml'), { force: true });
    const env = { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1', ...(list && { OUTPOST_TESTS: 'list' }) };
    const { status, stdout, stderr } = spawnSync(PYTHON, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'outpost_tests', '--junitxml=o.xml', ...args, 'tests'], { cwd: dir, encoding: 'utf8', env });
    const text = (value) => value.replace(/&quot;/g, '"').replace(/&apos;/g, "'").replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)).replace(/&amp;/g, '&');
    const xml = readFileSync(path.join(dir, 'o.xml'), 'utf8');
    const suite = /<testsuite name="([^"]*)"/.exec(xml)[1];
    const names = [...xml.matchAll(/<testcase classname="([^"]*)" name="([^"]*)"/g)].map(([, classname, name]) => `${suite}/${Buffer.from(`${text(classname)}.${text(name)}`).subarray(0, 256)}`);
    return { status, names, output: stdout + stderr };
  };
  const notRan = () => assert.ok(!existsSync(path.join(dir, 'ran')), 'no name is executed');

  test('without a list all tests run', () => {
    const { names, output } = run(null);
    assert.equal(names.length, HOSTILE.length + 4, output);
    assert.ok(names.includes('pytest/tests.deep.test_all.TestOps.test_add'), output);
  });

  test('each test can be listed by its name, and no name is executed', () => {
    const all = run(null).names;
    for (const name of [all.at(0), ...all.slice(HOSTILE.length - 1)]) assert.deepEqual(run([name]).names, [name]);
    const { names, output } = run(all.slice(0, HOSTILE.length));
    assert.deepEqual(names, all.slice(0, HOSTILE.length), output);
    notRan();
  });

  test('the plugin distinguishes equal test names in two classes', () => {
    assert.deepEqual(run(['pytest/tests.deep.test_all.TestOps.test_add']).names, ['pytest/tests.deep.test_all.TestOps.test_add']);
    assert.deepEqual(run(['pytest/tests.deep.test_all.test_add']).names, ['pytest/tests.deep.test_all.test_add']);
  });

  test('a list of unknown tests runs no test and exits with an error', () => {
    const { status, names } = run(['unit/add', 'pytest/', '', '$(touch ran)', '-k', 'pytest/tests.deep.test_all.test_add extra']);
    assert.deepEqual([status, names], [5, []]);
    notRan();
  });

  test('a listed name includes the suite and the prefix of the JUnit file', () => {
    const [name] = run(null, '-o', 'junit_suite_name=npu ops', '--junitprefix=linux').names;
    assert.match(name, /^npu ops\/linux\.tests\.deep\.test_all\.test_hostile\[/);
    assert.deepEqual(run([name], '-o', 'junit_suite_name=npu ops', '--junitprefix=linux').names, [name]);
  });

  test('a file that cannot be loaded is red in the rerun too', () => {
    writeFileSync(path.join(dir, 'tests/test_broken.py'), 'import nothing_like_this\n');
    const { status, output } = run(['pytest/.tests.test_broken']);
    assert.notEqual(status, 0);
    assert.match(output, /nothing_like_this/);
    rmSync(path.join(dir, 'tests/test_broken.py'));
  });

  test('a missing list is an error and does not mean all tests', () => {
    const { status, stderr, stdout } = spawnSync(PYTHON, ['-m', 'pytest', '-p', 'no:cacheprovider', '-p', 'outpost_tests', 'tests'], { cwd: dir, encoding: 'utf8', env: { ...process.env, PYTHONPATH: client, PYTHONDONTWRITEBYTECODE: '1', OUTPOST_TESTS: 'nowhere' } });
    assert.equal(status, 3, stdout + stderr);
    assert.match(stdout + stderr, /No such file.*nowhere/);
  });
});
