// examples/model-validation/outpost_report.py, which vendors copy: whatever pytest says of a test, what is red is red in the report.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const examples = fileURLToPath(new URL('../../examples/model-validation', import.meta.url));
const PYTHON = '/usr/bin/python3'; // Debian's, which has Debian's pytest
const hasPytest = spawnSync(PYTHON, ['-c', 'import pytest']).status === 0;

describe('the pytest plugin', { skip: !hasPytest && 'python3-pytest is not installed' }, () => {
  let dir;
  before(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'plugin-'));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const python = (...args) => spawnSync(PYTHON, args, { cwd: dir, encoding: 'utf8', env: { ...process.env, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: '1' } });
  const told = () => JSON.parse(readFileSync(path.join(dir, 'o.json'), 'utf8')).tests.map(({ suite, name, status }) => `${status} ${suite}/${name}`);

  test('what breaks before, beside or behind a test does not hide it', () => {
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
    assert.deepEqual(told().sort(), ['ERROR unit/broken', 'ERROR unit/late', 'ERROR unit/test_broken.py', 'FAIL unit/no_number', 'FAIL unit/red', 'PASS model/llama3', 'SKIP unit/typed']);
  });

  test('two workers with one test: each has its own result, and what was red stays red', () => {
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
    assert.deepEqual(told(), ['FAIL model/a', 'PASS model/a']);
  });
});
