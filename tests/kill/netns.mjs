// Pull runners on a network that breaks: servers and machines in separate network namespaces, whose links are cut (for shorter and
// longer than a lease) and slowed to a modem's speed while jobs run. Afterwards each job ran once, or once more for each expired
// lease, and each report and log exists once and completely.
//
//   node tests/kill/netns.mjs [--cuts N] [--jobs N] [--seed N]      (as root: makes namespaces, removes them)
//
// Every kernel seems to have the queue discipline tbf. Without it links are cut but not slowed.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { random } from '../github/faults.mjs';
import { Network, noNamespaces } from '../integration/lib/network.mjs';
import { OUTPOSTD, Outpost, freePort } from '../integration/lib/outpost.mjs';
import { Machine } from './machine.mjs';
import { ACCELERATOR, LEASE_MS, deliver, headsOf, jobsDone, jobsLeft, judge, machineConfig, serverOptions } from './runner_story.mjs';

const run = (program, ...args) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

async function certificate(dir, addresses) {
  const openssl = (...args) => run('openssl', ...args);
  const file = (name) => path.join(dir, name);
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file('ca.key'), '-out', file('ca.crt'), '-subj', '/CN=test authority', '-days', '2');
  openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file('server.key'), '-out', file('server.csr'), '-subj', '/CN=outpost');
  await fs.writeFile(file('san'), `subjectAltName=${addresses.map((address) => `IP:${address}`).join(',')}\n`);
  openssl('x509', '-req', '-in', file('server.csr'), '-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial', '-out', file('server.crt'), '-days', '2', '-extfile', file('san'));
  const read = (name) => fs.readFile(file(name), 'utf8');
  return { ca: await read('ca.crt'), cert: await read('server.crt'), key: await read('server.key'), caFile: file('ca.crt') };
}

// One server and n machines, each in its own namespace and on its own link.
async function startSite(network, { machines: n, dir }) {
  const here = network.cable();
  const links = Array.from({ length: n }, () => network.cableToMachine());
  const tls = await certificate(dir, [here, ...links].map(({ fromAddress }) => fromAddress));
  const port = await freePort();
  const wrapper = path.join(dir, 'outpostd');
  await fs.writeFile(wrapper, `#!/bin/sh\nexec ${network.command().join(' ')} ${OUTPOSTD} "$@"\n`, { mode: 0o755 });
  const outpost = await Outpost.start({ ...serverOptions(), program: wrapper, tls, port, listen: `0.0.0.0:${port}`, url: `https://${here.fromAddress}:${port}` });
  const runsFile = path.join(outpost.dir, 'runs');
  await fs.writeFile(runsFile, '');
  const machines = [];
  for (let i = 0; i < n; i++) {
    const machine = await Machine.make({ outpost, name: `machine-${i}`, accelerator: ACCELERATOR.name, dir: path.join(outpost.dir, `machine-${i}`), server: `https://${links[i].fromAddress}:${port}`,
      command: ['ip', 'netns', 'exec', links[i].to], config: { ...machineConfig(runsFile), ca_file: tls.caFile }, env: { CURL_CA_BUNDLE: '', SSL_CERT_FILE: '' } });
    await machine.start();
    machines.push(machine);
  }
  return { outpost, links, machines, runsFile };
}

async function trouble({ links, cuts, rand, say }) {
  const tally = { 'cut for a moment': 0, 'cut for longer than a lease': 0, slowed: 0 };
  for (let i = 0; i < cuts; i++) {
    await sleep(100 + rand() * 500);
    const link = links[Math.floor(rand() * links.length)];
    const dice = rand();
    if (dice < 0.3 && link.slow('64kbit')) {
      tally.slowed++;
      await sleep(2000);
      link.fast();
      continue;
    }
    const isLong = dice > 0.85;
    tally[isLong ? 'cut for longer than a lease' : 'cut for a moment']++;
    link.cut();
    await sleep(isLong ? LEASE_MS * 1.5 : rand() * 1500);
    link.restore();
    if ((i + 1) % 10 === 0) say(`${i + 1} cuts`);
  }
  return tally;
}

// Returns the problems as sentences.
export async function cutRunners({ seed, cuts, jobs, servers = 2, machines = 2 }, say = () => {}) {
  const rand = random(seed);
  const networks = [];
  const sites = [];
  const dirs = [];
  try {
    for (let i = 0; i < servers; i++) {
      dirs.push(await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-netns-')));
      networks.push(new Network());
      sites.push(await startSite(networks[i], { machines, dir: dirs[i] }));
    }
    const heads = sites.map((_, i) => headsOf(`${seed} ${i}`, jobs));
    const pushed = Promise.all(sites.map(async ({ outpost }, i) => { for (const head of heads[i]) await deliver(outpost, head); }));
    const tally = await trouble({ links: sites.flatMap(({ links }) => links), cuts, rand, say });
    await pushed;
    say(`${Object.entries(tally).map(([what, n]) => `${n} × ${what}`).join(', ')}; ${(await Promise.all(sites.map(({ outpost }) => jobsLeft(outpost)))).join(' and ')} jobs to go`);
    const problems = [];
    for (const [i, { outpost, machines: list, runsFile }] of sites.entries()) {
      await jobsDone(outpost).catch((error) => say(error.message));
      const { problems: found, handovers } = await judge(outpost, heads[i], runsFile);
      say(`server ${i}: ${jobs} jobs, ${handovers} leases expired`);
      problems.push(...found.map((what) => `server ${i}: ${what}`));
      if (found.length > 0) for (const machine of list) say(`${machine.name}:\n${(await machine.log()).split('\n').slice(-30).join('\n')}`);
    }
    return problems;
  } finally {
    for (const { outpost, machines: list } of sites) {
      for (const machine of list) await machine.kill().catch(() => {});
      await outpost.close().catch((error) => say(error.message));
    }
    for (const network of networks) await network.close();
    for (const dir of dirs) await fs.rm(dir, { recursive: true, force: true });
  }
}

async function main() {
  const { values } = parseArgs({ options: { cuts: { type: 'string' }, jobs: { type: 'string' }, seed: { type: 'string' } } });
  const options = { seed: Number(values.seed ?? process.env.SEED ?? Date.now() % 1_000_000), cuts: Number(values.cuts ?? 40), jobs: Number(values.jobs ?? 40) };
  const why = noNamespaces();
  if (why) { console.error(why); process.exit(1); }
  const started = Date.now();
  const say = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  say(`seed ${options.seed}: ${options.cuts} cuts, ${options.jobs} jobs on each of two servers`);
  const problems = await cutRunners(options, say);
  for (const problem of problems) console.error(problem);
  say(problems.length === 0 ? 'each job ran once, and once more for each expired lease; each report and log exists once' : `${problems.length} problems; SEED=${options.seed}`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
