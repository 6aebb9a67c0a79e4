// A practice ground for vendors: a GitHub that is none and a real outpostd, on this machine, to try a registration, a
// runner or a workflow against before the operator has heard of them. docs/vendors.md walks through it.
//
//   practice start [FOLDER]            begins, in the background; FOLDER (default ./practice) is outpostd's own
//   practice reload                    after a file of FOLDER was changed: says what is wrong with it
//   practice pull N                    a contributor opens pull request N
//   practice close N                   and closes it
//   practice workflow N REPOSITORY     runs the workflow in that folder on what N's dispatch brought, as GitHub Actions would
//   practice wait N ACCELERATOR        until its results of N are there, experiments included; prints them
//   practice stop
import { spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'my-org/outpost-ci'; // the vendor's repository on the stand-in GitHub
const WAIT = 60_000;
const self = fileURLToPath(import.meta.url);
const source = path.join(path.dirname(self), '..');

function fail(message) {
  console.error(message);
  process.exit(1);
}

// ---- the process in the background ----

async function serve(folder) {
  process.env.OUTPOSTD ??= path.join(source, 'build/release/outpostd');
  process.env.OUTPOSTCTL ??= path.join(source, 'build/release/outpostctl');
  const [{ startRig }, { startIssuer }, { pullRequestOf }, { ActionsRun }, { Outpost, until }] = await Promise.all([
    import('../tests/github/rig.mjs'), import('../tests/github/oidc.mjs'), import('../tests/github/payloads.mjs'),
    import('../tests/github/actions.mjs'), import('../tests/integration/lib/outpost.mjs'),
  ]);
  const [rig, issuer] = await Promise.all([startRig({ repositories: [UPSTREAM, VENDOR].map((name) => ({ name })) }), startIssuer()]);
  const outpost = await Outpost.start({ rig, issuer, config: { log: { level: 'info' } } });
  const send = async (number, action, pull) => {
    const answer = await rig.deliver('pull_request', pullRequestOf(action, pull));
    if (answer.status_code !== 202) throw new Error(`outpostd answered ${answer.status_code}`);
    return `pull request ${number} of ${UPSTREAM} is ${action}: ${outpost.url}/api/v1/pulls/${number}`;
  };
  const commands = {
    async reload() {
      const check = await outpost.check();
      if (check.code !== 0) throw new Error(check.stderr + check.stdout);
      await outpost.reload();
      return `outpostd knows: ${(await outpost.api('accelerators')).accelerators.map(({ name }) => name).join(', ')}`;
    },
    pull: (number) => send(number, 'opened', rig.openPull(UPSTREAM, { number: Number(number), title: 'Fuse addmm with relu' })),
    close: (number) => send(number, 'closed', rig.updatePull(UPSTREAM, Number(number), { state: 'closed' })),
    async workflow(number, repository) {
      const event = await rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { payload } }) => payload.number === Number(number) });
      const upstream = path.join(outpost.dir, 'upstream');
      await fs.mkdir(upstream, { recursive: true });
      await fs.writeFile(path.join(upstream, 'README.md'), `${UPSTREAM} at ${event.client_payload.payload.pull_request.head.sha}\n`);
      const run = await ActionsRun.run({
        file: path.join(repository, '.github/workflows/outpost.yml'), event, issuer, runId: Date.now(), repositories: { [VENDOR]: repository, [UPSTREAM]: upstream },
      });
      return Object.entries(run.jobs).map(([id, { result }]) => `${id}: ${result}\n${run.log(id).replace(/^/gm, '  ').trimEnd()}`).join('\n');
    },
    async wait(number, name) {
      const view = await until(async () => {
        const { status, json } = await outpost.get(`/api/v1/pulls/${number}`);
        const one = status === 200 && json.accelerators.find((each) => each.name === name);
        const isOver = one && ['done', 'failed', 'expired'].includes(one.dispatches[0].state);
        // one experiment may follow another
        const isRunningAgain = json?.verdicts?.some(({ accelerator, rerun }) => accelerator === name && rerun === 'pending');
        return isOver && !isRunningAgain && json;
      }, { timeout: WAIT, what: `${name} has results of ${number}` });
      return view.verdicts.filter((one) => one.accelerator === name).map(({ suite, test, status, message }) => `${name}: ${suite}/${test} ${status}${message ? ` (${message})` : ''}`).join('\n');
    },
  };
  const server = http.createServer(async (request, response) => {
    const [command, ...args] = new URL(request.url, 'http://practice').searchParams.getAll('arg');
    if (command === 'stop') {
      response.end('stopped\n');
      server.close();
      await outpost.close();
      await Promise.all([rig.close(), issuer.close()]);
      await fs.rm(folder);
      process.exit(0);
    }
    try {
      response.end(`${await commands[command](...args)}\n`);
    } catch (error) {
      response.writeHead(400).end(`${error.message}\n`);
    }
  });
  server.listen(0, '127.0.0.1', async () => {
    await fs.writeFile(path.join(outpost.dir, 'practice.port'), String(server.address().port));
    await fs.writeFile(path.join(outpost.dir, 'env'), `export OUTPOST_URL=${outpost.url}\nexport OUTPOST_CONFIG=${path.resolve(folder)}/outpost.yml\n`);
    await fs.symlink(outpost.dir, folder);
  });
}

// ---- the commands ----

async function start(folder) {
  if (existsSync(folder)) fail(`${folder} is there already: "practice stop" ends the one that runs, or name another folder`);
  const log = `${folder}.log`;
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, [self, 'serve', path.resolve(folder)], { detached: true, stdio: ['ignore', output, output] });
  child.unref();
  while (!existsSync(folder)) {
    if (child.exitCode !== null) fail(`it did not begin; ${log}:\n${readFileSync(log, 'utf8')}`);
    await sleep(50);
  }
  console.log(`a practice Outpost runs; its files are in ${folder}/, and ". ${folder}/env" sets OUTPOST_URL and OUTPOST_CONFIG`);
}

async function ask(command, args) {
  const file = path.join(process.env.PRACTICE ?? 'practice', 'practice.port');
  if (!existsSync(file)) fail(`no practice Outpost runs here (${file} is not there): "practice start" begins one`);
  const query = new URLSearchParams([command, ...args].map((value) => ['arg', value]));
  const answer = await fetch(`http://127.0.0.1:${readFileSync(file, 'utf8')}/?${query}`, { signal: AbortSignal.timeout(2 * WAIT) });
  const text = await answer.text();
  if (!answer.ok) fail(text.trimEnd());
  process.stdout.write(text);
}

const [command, ...args] = process.argv.slice(2);
const counts = { reload: 0, pull: 1, close: 1, workflow: 2, wait: 2, stop: 0 };
if (command === 'serve') await serve(args[0]);
else if (command === 'start' && args.length <= 1) await start(args[0] ?? process.env.PRACTICE ?? 'practice');
else if (counts[command] === args.length) await ask(command, command === 'workflow' ? [args[0], path.resolve(args[1])] : args);
else fail(readFileSync(self, 'utf8').split('\n').filter((line) => line.startsWith('//   ')).map((line) => line.slice(5)).join('\n'));
