// Faults of GitHub and of vendors, and kills of the daemon, all drawn from one seed.
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from './story.mjs';

// The faults of API requests and their frequency. The limits have a Retry-After of a second, because a minute (the daemon's default)
// would be most of the run.
const FAULTS = [
  { kind: 'status', status: 502, probability: 0.05 },
  { kind: 'status', status: 500, probability: 0.04, when: 'after' },
  { kind: 'status', status: 503, probability: 0.02 },
  { kind: 'reset', probability: 0.04 },
  { kind: 'reset', probability: 0.05, when: 'after' },
  { kind: 'truncate', probability: 0.02 },
  { kind: 'slow', ms: 300, probability: 0.05 },
  { kind: 'secondary', retryAfter: 1, probability: 0.01 },
  { kind: 'secondary', retryAfter: 1, status: 429, probability: 0.005 },
  { kind: 'primary', resetIn: 1, probability: 0.005 },
  { kind: 'expired', probability: 0.01 },
];

// hangs: the number of requests that hang before and after their effect (each costs the client its time-out); rude: the number of
// limits without a Retry-After (each costs a minute); share: the share of the faults above.
export function breakGithub(rig, seed, { hangs = 0, rude = 0, share = 1 } = {}) {
  FAULTS.forEach((fault, i) => rig.fault({ ...fault, probability: fault.probability * share, seed: seed + i }));
  for (const when of ['before', 'after']) if (hangs > 0) rig.fault({ kind: 'hang', when, probability: 0.01, count: hangs, seed: seed + 99 });
  if (rude > 0) rig.fault({ kind: 'secondary', skip: 100, count: rude });
}

// The answers of a vendor's own CI, which mostly accepts the event.
export function moodyVendor(seed) {
  const dice = new Dice(seed ^ 0x5eed);
  return () => {
    const n = dice.number();
    return n < 0.08 ? 503 : n < 0.12 ? 500 : n < 0.2 ? 'reset' : 202;
  };
}

// Waits for a moment to kill: after some milliseconds, during an answer of the API, during a webhook, or before the daemon is ready.
export async function moment(stage, dice) {
  const within = AbortSignal.timeout(400);
  const once = (emitter, event) => new Promise((resolve) => {
    emitter.once(event, resolve);
    within.addEventListener('abort', resolve, { once: true });
  });
  const how = dice.number();
  if (how < 0.2) {
    await sleep(dice.below(120));
    return 'starting';
  }
  await stage.ready().catch(() => {});
  await sleep(dice.below(150));
  if (how < 0.5) {
    for (let left = dice.between(1, 4); left > 0 && !within.aborted; left--) await once(stage.rig, 'request');
    await sleep(dice.below(4));
    return 'talking to GitHub';
  }
  if (how < 0.7) {
    const count = stage.delivered;
    while (stage.delivered === count && !within.aborted) await sleep(1);
    await sleep(dice.below(4));
    return 'taking a webhook in';
  }
  await sleep(dice.below(200));
  return 'at some time';
}

// Kills the daemon `kills` times, spread over the story's deliveries, and restarts it each time. Returns the number of kills by kind
// of moment.
export async function killer(stage, { seed, kills, onKill = () => {} }) {
  const dice = new Dice(seed ^ 0xdead);
  const tally = {};
  for (let i = 1; i <= kills; i++) {
    await stage.reaches((i - 1) / kills);
    const what = await moment(stage, dice);
    await stage.outpost.kill();
    tally[what] = (tally[what] ?? 0) + 1;
    onKill(i, what);
    await sleep(dice.below(40));
    await stage.start();
  }
  await stage.ready();
  return tally;
}
