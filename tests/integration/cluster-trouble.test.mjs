// Troubles of several daemons on one database: bad settings, a server that refuses, a full disk, a wrong clock. Each gives a clear error,
// /readyz states the reason, and no accepted webhook is lost.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fakeSha, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { owner, programs, psql } from '../postgres.mjs';
import { Database } from './lib/database-server.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { assertKept, deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const HOUR = 3_600_000;
const canMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

const reason = async (node) => {
  const { status, json } = await node.get('/readyz');
  return status === 503 ? json.error : status;
};
const says = (node, expected) => until(async () => expected === await reason(node), { what: `/readyz of ${node.name} says ${expected}` });

// Webhooks, with the GUIDs that were accepted.
class Hooks {
  accepted = [];
  #n = 0;

  constructor(rig) { this.rig = rig; }

  #next(node) {
    this.rig.setTarget(`${node.url}/github/webhook`);
    return push({ after: fakeSha(`trouble ${++this.#n}`) });
  }

  // Returns the status.
  async send(node) {
    const guid = randomUUID();
    const { status_code: status } = await this.rig.deliver('push', this.#next(node), { guid });
    if (status === 202) this.accepted.push(guid);
    return status;
  }

  // One that the daemon must accept.
  async accept(node) {
    this.accepted.push((await deliver(this.rig, 'push', this.#next(node))).guid);
  }

  assertKept(node) { return assertKept(node, this.accepted); }
}

describe('daemons on one database', { skip: notBuilt }, () => {
  let rig, database, vendor, hooks;
  const nodes = [];

  async function prepare(name, more = {}) {
    const node = await Outpost.prepare({
      rig, wait: false, ...more, secrets: { chip: { hook: 's' } },
      accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', vendor: 'A vendor', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }],
      config: { store: database.url(), node: name, ...more.config },
    });
    nodes.push(Object.assign(node, { name }));
    return node;
  }
  const start = async (name, more) => {
    const node = await prepare(name, { ...more, wait: true });
    await node.spawn();
    await says(node, 200);
    return node;
  };
  // A daemon that ends by itself: the words of its last error. On a busy machine the database may not answer it, and then it starts again.
  async function refusal(node) {
    await until(async () => {
      await node.spawn();
      return !await node.hasMissedDatabase();
    }, { what: 'the daemon ends after an answer of the database' });
    const { code } = await node.exited;
    await node.kill();
    assert.equal(code, 1, node.tail());
    return node.tail(3);
  }

  // Two commands, because a session that begins before the first one is committed keeps the old setting.
  async function alterForAll(statement, sessions) {
    await database.primary.sql(statement);
    await database.primary.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${sessions}`);
  }

  before(async () => {
    [rig, vendor, database] = await Promise.all([startRig(), startSilentVendor({ secret: 's' }), Database.start()]);
    hooks = new Hooks(rig);
  });

  after(async () => {
    for (const node of nodes) await node.close();
    await Promise.all([vendor?.stop(), rig?.close(), database?.close()]);
  });

  test('of two with one name the later one works, and the other one says why it does not', async () => {
    const first = await start('twin');
    await hooks.accept(first);
    const second = await start('twin');
    const text = 'another outpostd has `node: twin`, too, and started later: set another `node` in outpost.yml';
    await says(first, `the store cannot be written: ${text}`);
    await until(async () => (await first.ctl('status')).stdout.split('\n').includes(`! the database cannot be written, and webhooks get 503: ${text}`), { what: 'outpostctl says so, too' });
    await first.waitForLog({ ev: 'node_fenced', node: 'twin' });
    await first.waitForLog({ ev: 'store_commit_failed', error: text });
    await hooks.accept(second);
    await second.stop();
    await says(first, 200);
    await hooks.accept(first);
    await hooks.assertKept(first);
    await first.stop();
  });

  test('a server that refuses to write is named, and nothing is missing when it writes again', async () => {
    const node = await start('north');
    const refuse = (word) => alterForAll(`ALTER DATABASE outpost SET default_transaction_read_only = ${word}`, "datname = 'outpost'");
    await hooks.accept(node);
    await refuse('on');
    await until(async () => await hooks.send(node) === 503, { what: 'a webhook gets 503' });
    await says(node, 'the store cannot be written: the database is a standby, or it is set to read-only');
    assert.equal((await node.get('/healthz')).status, 200);
    const words = /^! the database cannot be written, .*\nPostgreSQL: .*; this server or database is set to read-only$/m;
    await until(async () => words.test((await node.ctl('status')).stdout), { what: 'outpostctl names the setting' });
    await refuse('off');
    await says(node, 200);
    await hooks.accept(node);
    await hooks.assertKept(node);
    await node.stop();
  });

  test('a server that is away is named', async () => {
    const node = await start('north');
    await hooks.accept(node);
    await database.stop('immediate');
    await until(async () => await hooks.send(node) === 503, { what: 'a webhook gets 503' });
    await says(node, 'the store cannot be written: the database is not reached');
    assert.match((await node.get('/metrics')).text, /^outpost_store_writable 0$/m);
    // Each command ends while the server is away, with the error of the database.
    const known = ['known', 'add', '--test', 'model/llama3', '--url', 'https://github.com/pytorch/pytorch/issues/1'];
    for (const args of [['status'], ['deliveries'], ['dispatches'], ['retest', '1'], ['comment', 'preview', '1'], ['runner', 'list'], ['known', 'list'], known, ['token', 'issue', 'chip'], ['runner', 'revoke', 'm', '--accelerator', 'chip'], ['replay', hooks.accepted[0]], ['nightly', 'run', 'chip']]) {
      const { code, stderr } = await node.ctl(...args);
      assert.deepEqual([code, /^outpostctl: PostgreSQL: .*(?:Connection refused|the connection was lost)/.test(stderr)], [1, true], `${args.join(' ')}: ${stderr}`);
    }
    await node.waitForLog({ ev: 'node_is_silent', node: 'north', why: /Connection refused/ });
    await until(async () => {
      const after = node.log.length;
      assert.equal(await hooks.send(node), 503);
      return /Connection refused/.test((await node.waitForLog({ ev: 'delivery_not_written' }, { after })).fields.why);
    }, { interval: 2000, what: 'the log has the reason for the 503' });
    await database.start();
    await says(node, 200);
    await node.waitForLog({ ev: 'node_acts_again' });
    await until(async () => (await node.ctl(...known)).code === 0, { what: 'a command is done again' });
    await hooks.assertKept(node);
    await node.stop();
  });

  test('a start waits while the server is away, and while it is a standby or read-only, and logs each reason once', async () => {
    const node = await prepare('south');
    const starts = []; // {at, began}: the first line of its log, and the time
    // The daemon waits for 20 s. On a busy machine the server may need longer, and then it starts again.
    const begin = async () => {
      starts.push({ at: node.log.length, began: performance.now() });
      await node.spawn();
      node.hasMissedDatabase().then((hasMissed) => hasMissed && begin());
    };
    await database.primary.sql('ALTER DATABASE outpost SET default_transaction_read_only = on');
    await database.stop();
    await begin();
    await node.waitForLog({ ev: 'store_not_reached', why: /Connection refused/ });
    await database.start();
    await node.waitForLog({ ev: 'store_not_reached', why: /read-only transaction \(25006\); this server or database is set to read-only/ });
    await database.primary.sql('ALTER DATABASE outpost RESET default_transaction_read_only');
    await says(node, 200);
    // A reason that lasts is repeated after ten seconds; the daemon tries twice a second.
    for (const [i, { at, began }] of starts.entries()) {
      const end = starts[i + 1] ?? { at: node.log.length, began: performance.now() };
      const lines = node.log.slice(at, end.at).filter(({ fields }) => fields.ev === 'store_not_reached').map(({ fields }) => fields.why);
      const repeated = lines.filter((why, n) => why === lines[n - 1]);
      assert.ok(repeated.length <= (end.began - began) / 10_000, lines.join('\n'));
    }
    await node.stop();
  });

  test('a rejected password is named with its file, and /readyz names no user', async () => {
    const hba = path.join(database.primary.data, 'pg_hba.conf'), before = await fs.readFile(hba, 'utf8');
    const reload = async (text) => {
      await fs.writeFile(hba, text);
      await database.primary.sql('SELECT pg_reload_conf()');
    };
    await database.primary.sql("CREATE ROLE secured LOGIN SUPERUSER PASSWORD 'right'");
    await reload(`host all secured 127.0.0.1/32 scram-sha-256\n${before}`);
    const node = await prepare('secured', { config: { store: database.url().replace('outpost@', 'secured@'), store_password_file: 'password' } });
    const file = path.join(node.dir, 'password');
    await fs.writeFile(file, 'wrong\n', { mode: 0o600 });
    const refused = await refusal(node);
    assert.match(refused, /ev=start_failed .*password authentication failed for user/);
    assert.ok(refused.includes(`store_password_file has the password: ${file}`), refused);
    await fs.writeFile(file, 'right\n', { mode: 0o600 });
    node.options.wait = true;
    await node.spawn();
    await says(node, 200);
    await alterForAll("ALTER ROLE secured PASSWORD 'another'", "usename = 'secured'");
    await says(node, 'the store cannot be written: the database refuses the login of this daemon');
    await until(async () => /password authentication failed for user/.test((await node.ctl('retest', '1')).stderr), { what: 'outpostctl names the reason' });
    await database.primary.sql("ALTER ROLE secured PASSWORD 'right'");
    await says(node, 200);
    await node.stop();
    await reload(before);
  });

  test('status lists a daemon that is left alone, and marks seats that no daemon has', async () => {
    const node = await start('alone');
    const lines = async () => (await node.ctl('status')).stdout.split('\n');
    await until(async () => (await lines()).some((line) => /^alone +\S+ +\d+ s ago/.test(line)), { what: 'status lists the daemon' });
    await until(async () => {
      if ((await node.api('status')).free_seats.length > 0) return false;
      const { code, stdout } = await node.ctl('status');
      return code === 0 && !stdout.split('\n').some((line) => line.startsWith('! no daemon has the seats'));
    }, { what: 'the daemon has each seat' });
    // A daemon of a later release that lives gets each seat. This one takes none.
    const seen = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    await until(async () => {
      // It is new again if the test was late and the other daemon gave it up.
      await database.primary.sql(`UPDATE node SET seen_ms = ${seen} WHERE name = 'ghost'`, 'outpost');
      await database.primary.sql(`INSERT INTO node (epoch, name, version, schema_version, started_ms, seen_ms, batch)
        SELECT (SELECT max(epoch) + 1 FROM node), 'ghost', '9', 999, ${seen}, ${seen}, 0 WHERE NOT EXISTS (SELECT 1 FROM node WHERE name = 'ghost')`, 'outpost');
      return (await lines()).some((line) => /^! no daemon has the seats .*planner.*registry/.test(line)) && (await node.api('status')).free_seats.includes('planner');
    }, { what: 'status marks the seats' });
    await node.waitForLog({ ev: 'nodes_given_up', n: 1, nodes: 'ghost', consequence: /begins again as a new node/ });
    await until(async () => (await node.api('status')).free_seats.length === 0, { what: 'the daemon has each seat again' });
    await node.stop();
  });

  test('a newer schema, an unknown user and an unknown database end the daemon with a clear error', async () => {
    const wrong = (from, to) => prepare('west', { config: { store: database.url().replace(from, to) } });
    assert.match(await refusal(await wrong('outpost@', 'nobody@')), /role .*nobody.* does not exist/);
    assert.match(await refusal(await wrong('/outpost?', '/nowhere?')), /database .*nowhere.* does not exist/);
    await database.primary.sql('UPDATE outpost_schema SET version = version + 88, readable_from = version + 88', 'outpost');
    assert.match(await refusal(await prepare('west')), /run the newer outpostd/);
    await database.primary.sql('UPDATE outpost_schema SET version = version - 88, readable_from = version - 88', 'outpost');
    const node = await start('west');
    await hooks.assertKept(node);
    await node.stop();
  });

  test('a clock that is off by an hour changes nothing', { skip: !existsSync(FAKETIME) && 'libfaketime is not installed' }, async () => {
    const right = await start('right');
    const wrong = await start('wrong', { env: { LD_PRELOAD: FAKETIME, FAKETIME: '+1h', DONT_FAKE_MONOTONIC: '1', ASAN_OPTIONS: 'verify_asan_link_order=0' } });
    assert.match(await fs.readFile(`/proc/${wrong.pid}/maps`, 'utf8'), /libfaketime/);
    const near = (text) => assert.ok(Math.abs(Date.parse(text) - Date.now()) < HOUR / 2, text);
    const plan = async (node, number) => {
      rig.setTarget(`${node.url}/github/webhook`);
      await deliver(rig, 'pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
      for (const one of nodes.filter((other) => [right, wrong].includes(other) && !other.isKilled)) {
        const { accelerators: [{ dispatches: [dispatch] }] } = await one.waitForApi(`pulls/${number}`, ({ accelerators }) => accelerators[0]?.dispatches[0]?.state === 'acknowledged');
        near(dispatch.created_at);
        near(dispatch.sent_at);
      }
    };
    await plan(right, 1);
    await plan(wrong, 2);
    for (const { seen_at: seen } of (await wrong.api('status')).nodes) near(seen);
    right.isKilled = true;
    await right.kill();
    await plan(wrong, 3); // it has each seat
    for (const number of [1, 2, 3]) assert.equal((await wrong.api(`pulls/${number}`)).accelerators[0].dispatches[0].state, 'acknowledged');
    assert.ok(!wrong.log.some(({ fields }) => /clock_jump|dispatches_expired/.test(fields.ev)));
    await wrong.stop();
  });
});

describe('a database whose disk is full', { skip: notBuilt || (!canMount && 'no mount namespaces here') }, () => {
  // A server whose files are in a file system of 96 MiB that only it sees. fill() leaves no room there, and empty() gives it back.
  async function startSmall() {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-small-')), disk = path.join(folder, 'disk'), data = path.join(disk, 'data');
    const { uid = process.getuid(), gid = process.getgid() } = owner();
    await fs.mkdir(disk);
    const settings = Object.entries({ unix_socket_directories: folder, listen_addresses: '', fsync: 'off', full_page_writes: 'off', max_wal_size: '16MB', min_wal_size: '2MB' });
    const server = `"${programs()}/initdb" --no-sync --no-locale --encoding=UTF8 --auth=trust --username=outpost --wal-segsize=1 "${data}" && exec "${programs()}/postgres" -D "${data}" ${settings.map(([key, value]) => `-c ${key}=${value}`).join(' ')}`;
    const child = spawn('unshare', ['-rm', 'sh', '-c', `mount -t tmpfs -o size=96m none "${disk}" && exec unshare -U --map-user=${uid} --map-group=${gid} sh -c '${server}'`], { stdio: 'ignore' });
    const kill = () => child.kill('SIGQUIT');
    process.on('exit', kill);
    const url = (name) => `postgresql:///${name}?host=${folder}&user=outpost&options=-c%20outpost.may_lose_rows%3Don`;
    await until(() => psql(url('postgres'), 'SELECT 1'), { what: 'the server answers' });
    await psql(url('postgres'), "CREATE DATABASE outpost TEMPLATE template0 LOCALE 'C'");
    const ballast = path.join('/proc', String(child.pid), 'root', disk, 'ballast');
    return {
      url: url('outpost'),
      fill: () => fs.writeFile(ballast, Buffer.alloc(96 << 20)).catch((error) => assert.equal(error.code, 'ENOSPC')),
      empty: () => fs.rm(ballast),
      stop: async () => {
        process.off('exit', kill);
        kill();
        await once(child, 'exit');
        await removeFolder(folder);
      },
    };
  }

  test('webhooks get 503 meanwhile, /readyz says why, and no accepted one is lost', async () => {
    const [rig, small] = await Promise.all([startRig(), startSmall()]);
    const hooks = new Hooks(rig);
    const node = await Outpost.prepare({ rig, config: { store: small.url } });
    try {
      await node.spawn();
      await hooks.accept(node);
      await small.fill();
      await until(async () => await hooks.send(node) === 503 && /the disk of the database is full/.test(await reason(node)), { what: 'a webhook gets 503, and /readyz the reason' });
      assert.equal((await node.get('/healthz')).status, 200);
      await small.empty();
      await hooks.accept(node);
      await says(node, 200);
      await hooks.assertKept(node);
    } finally {
      await node.close();
      await small.stop();
      await rig.close();
    }
  });
});
