// Three daemons, a database and nginx on this machine. Webhooks and reports come all the time; one daemon is killed with SIGKILL in the
// middle, and at the end nothing is missing. Each printed line is something that was seen to happen. It takes less than a minute.
//
// usage: node demo/cluster.mjs BUILD_FOLDER   (make demo-cluster)
import path from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

const build = path.resolve(process.argv[2] ?? 'build/release');
process.env.OUTPOSTD = path.join(build, 'outpostd');
process.env.OUTPOSTCTL = path.join(build, 'outpostctl');
const [{ startRig }, { fakeSha, pullRequestOf, push }, { startWebhookVendor }, { Cluster }, { until }] = await Promise.all([
  import('../tests/github/rig.mjs'), import('../tests/github/payloads.mjs'), import('../tests/github/vendors.mjs'),
  import('../tests/integration/lib/cluster.mjs'), import('../tests/integration/lib/outpost.mjs'),
]);

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'shared by Outpost and the lab';
const PUSHES = 150; // each has one report, and a daemon accepts 100 a minute from one accelerator
const PULLS = 6;
const SENDERS = 4; // GitHub's connections
const PACE_MS = 400;

const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
const begun = Date.now();
const clearLine = () => { if (colour) process.stdout.write('\r\x1b[K'); };
const step = (title) => { clearLine(); console.log(`\n${paint('1', title)}`); };
const say = (text) => { clearLine(); console.log(`  ${paint('2', `${((Date.now() - begun) / 1000).toFixed(1).padStart(5)} s`)}  ${text}`); };
const progress = (text) => { if (colour) process.stdout.write(`\r\x1b[K  ${paint('2', `${((Date.now() - begun) / 1000).toFixed(1).padStart(5)} s`)}  ${text}`); };

// A table with aligned columns; the last column is a mark.
function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => String(row[i]).length)));
  for (const [n, row] of rows.entries()) {
    const text = row.map((cell, i) => (i === 0 ? String(cell).padEnd(widths[i]) : String(cell).padStart(widths[i]))).join('   ');
    console.log(`  ${n === 0 ? paint('2', text) : text.replace('✓', paint('32', '✓')).replace('✗', paint('31', '✗'))}`);
  }
}

// Asks again when a loaded machine did not answer in time.
const statusOf = (cluster) => until(() => cluster.api('status'), { what: 'a daemon shows its status' });

const seatsOf = ({ nodes }, isMeant = () => true) => nodes.filter(isMeant).flatMap(({ seats }) => seats);

// The daemons as they see themselves, or "down".
async function showNodes(cluster) {
  const { nodes } = await statusOf(cluster);
  const byName = new Map(nodes.map((one) => [one.name, one]));
  table([['daemon', 'state', 'seats'], ...cluster.nodes.map(({ name, isStarted }) => [name, isStarted ? 'runs' : 'killed', byName.get(name)?.seats.join(' ') || '-'])]);
}

// Sends a webhook as GitHub does, and again if it fails, as the operator of a hook or the reconciler does. Returns the attempts.
async function deliver(rig, event, payload, guid, counts) {
  for (let attempt = 1; ; attempt++) {
    const { status_code: status } = await rig.deliver(event, payload, { guid });
    if (status === 202) counts.accepted++;
    if (status === 200) counts.duplicates++;
    if (status === 202 || status === 200) return attempt;
    counts.refused++;
    await sleep(100);
  }
}

async function main() {
  step('1  A GitHub that runs offline, a vendor, PostgreSQL, three daemons and nginx');
  const rig = await startRig();
  const reports = new Map(); // head → the answers to its report
  const lab = await startWebhookVendor({
    secret: SECRET, once: true, tries: 1000,
    script: ({ payload }) => {
      const isRed = Boolean(payload.pull_request) && payload.number % 2 === 0;
      return [{ workflow: 'lab', job: 'models', skipStart: true, hold: 50, conclusion: isRed ? 'failure' : 'success', tests: [{ suite: 'model', name: 'llama3', status: isRed ? 'FAIL' : 'PASS', duration: 1.5, ...(isRed && { message: 'expected 1, got 2' }) }] }];
    },
  });
  lab.on('report', ({ status, answer }) => { if (status === 'completed') reports.set(answer.body.job, answer.status); });
  const cluster = await Cluster.prepare({
    rig, secrets: { lab: { hook: SECRET } },
    accelerators: [{ name: 'lab', title: 'Lab', vendor: 'A lab', level: 'L2', trust: 'anyone', triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
    config: { comment: { min_interval: '1s' }, reconcile: { interval: '5s' }, log: { level: 'info' } },
  });
  await cluster.spawn();
  await cluster.ready();
  say(`PostgreSQL at port ${cluster.database.primary.port}, nginx at ${cluster.url}, three daemons behind it are ready`);
  await until(async () => seatsOf(await cluster.api('status')).length > 0, { what: 'the seats are taken' });
  const nSeats = seatsOf(await statusOf(cluster)).length;
  await showNodes(cluster);

  step(`2  ${PUSHES} pushes and ${PULLS} pull requests come in; the vendor reports each`);
  const counts = { accepted: 0, duplicates: 0, refused: 0 };
  const webhooks = [];
  let before = rig.world.branchTip(UPSTREAM);
  for (let i = 0; i < PUSHES; i++) {
    const sha = fakeSha(`cluster demo ${i}`);
    webhooks.push({ head: sha, event: 'push', payload: push({ before, after: sha }) });
    before = sha;
  }
  for (let number = 1; number <= PULLS; number++) {
    const pull = rig.openPull(UPSTREAM, { number, headSha: fakeSha(`cluster demo pull ${number}`), title: `Change ${number}` });
    webhooks.splice(Math.floor((number * PUSHES) / (PULLS + 1)), 0, { head: pull.head?.sha ?? fakeSha(`cluster demo pull ${number}`), number, event: 'pull_request', payload: pullRequestOf('opened', pull) });
  }
  const total = webhooks.length;
  const queue = [...webhooks];
  let longest = 0;
  const sender = async () => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      const start = Date.now();
      await deliver(rig, one.event, one.payload, crypto.randomUUID(), counts);
      longest = Math.max(longest, Date.now() - start);
      progress(`${counts.accepted + counts.duplicates} of ${total} webhooks accepted, ${reports.size} results reported`);
      await sleep(PACE_MS);
    }
  };
  const sending = Promise.all(Array.from({ length: SENDERS }, sender));
  await until(() => total - queue.length > total / 3, { what: 'a third of the webhooks is sent' });
  const victim = await busiest(cluster);
  const open = total - queue.length - reports.size;
  await cluster.killNode(victim);
  const killed = Date.now();
  say(`${paint('31', `kill -9 ${victim.name}`)}, which holds the most seats; ${open} webhooks have no result yet`);
  await until(() => total - queue.length > (2 * total) / 3, { what: 'two thirds of the webhooks are sent' });
  await until(async () => seatsOf(await cluster.api('status'), ({ name }) => name !== victim.name).length >= nSeats, { what: 'the other daemons hold its seats' });
  say(`after ${((Date.now() - killed) / 1000).toFixed(1)} s the two others hold its seats`);
  await showNodes(cluster);
  await cluster.start(victim);
  await sending;
  say(`all ${total} webhooks are accepted; the slowest one waited for ${(longest / 1000).toFixed(1)} s`);

  step('3  The rest arrives');
  const bots = (number) => rig.comments(UPSTREAM, number).filter(({ author }) => author === rig.bot);
  await until(() => {
    progress(`${reports.size} of ${total} results reported, ${Array.from({ length: PULLS }, (_, i) => bots(i + 1).length).filter(Boolean).length} of ${PULLS} comments written`);
    return reports.size >= total && webhooks.every(({ number }) => !number || bots(number).length > 0);
  }, { timeout: 180_000, interval: 100, what: 'each webhook has a result, and each pull request a comment' });
  await cluster.ready();

  step('4  What was counted');
  const ids = new Map(); // head → dispatches
  for (const { body, event } of lab.events) {
    if (event === 'cancel' || !body.payload) continue;
    const head = body.payload.pull_request?.head.sha ?? body.payload.after;
    ids.set(head, (ids.get(head) ?? new Set()).add(body.outpost.dispatch_id));
  }
  const doubled = [...ids.values()].filter((set) => set.size !== 1).length;
  const comments = Array.from({ length: PULLS }, (_, i) => bots(i + 1).length);
  const rows = [
    ['webhooks that GitHub was told are accepted', total, counts.accepted + counts.duplicates],
    ['of them, commits that the vendor was asked to test', total, ids.size],
    ['commits with more than one dispatch', 0, doubled],
    ['results that the vendor reported', total, reports.size],
    ['pull requests with one comment', PULLS, comments.filter((n) => n === 1).length],
    ['requests against GitHub\'s API description', 0, rig.violations().length],
  ].map((row) => [...row, row[1] === row[2] ? '✓' : '✗']);
  table([['', 'expected', 'seen', ''], ...rows]);
  say(`${counts.refused} answers were no 202 and were sent again; nginx passed the others of the dead daemon on`);
  await showNodes(cluster);
  if (rows.some((row) => row[3] === '✗')) throw new Error('something is missing');
  console.log(`\n  ${paint('32', 'Nothing is missing.')} docs/cluster.md leads to the same on several machines.`);
  await cluster.close();
  await Promise.all([lab.stop(), rig.close()]);
}

async function busiest(cluster) {
  const { nodes } = await statusOf(cluster);
  const [first] = nodes.toSorted((a, b) => b.seats.length - a.seats.length);
  return cluster.nodes.find(({ name }) => name === first.name) ?? cluster.nodes[0];
}

await main().catch((error) => {
  console.error(`\n${paint('31', 'The demo failed:')} ${error.message}`);
  process.exit(1);
});
