// Waits until the daemon is idle. If work waits for a GitHub budget or a pause, the clock moves ahead.
import { setTimeout as sleep } from 'node:timers/promises';

const STEP = 300; // the precision of times in the results; ms
const SHORT_STEPS = 10; // work that waits for more steps waits for a long time
const LONGEST_PAUSE = 300_000;
const LONG_LOOKS = 200; // attribution that is due for more looks waits, too
const PATIENCE_LOOKS = 4000;
const PAUSE_MS = 4; // between two looks, because each costs a millisecond of the daemon and of this process
const SOON_MS = 3000; // longer than the second after which a failure makes other changes due
const STILL_MS = 200; // nothing has changed for so long, in real time

// expected: the number of successive looks that must find it idle, the second and third with longer pauses before them. step:
// how far the clock moves at first when work waits. isExact: it moves far only when nothing has changed for some real time, so that it
// does not depend on the speed of the machine. Then it also waits for changes that are attributed within the next seconds.
export async function settle({ daemon, github, clock }, expected, { step = STEP, isExact = false } = {}) {
  let pause = step, waits = 0, { requests } = github, seen = '', since = performance.now();
  for (let idle = 0, looks = 0; idle < expected; looks++) {
    await sleep(PAUSE_MS * (idle + 1));
    const status = await daemon.get('/api/v1/status');
    if (looks > PATIENCE_LOOKS) throw new Error(`not settled: ${JSON.stringify(status)}`);
    const { deliveries, outbox, store, attribution, nodes } = status;
    const seats = nodes?.flatMap((node) => node.seats).length ?? 0;
    daemon.seats = Math.max(daemon.seats ?? 0, seats); // after a pause a node takes its seats again
    const isAttributing = (attribution?.due ?? 0) > 0;
    const isSoon = isExact && Boolean(attribution?.next) && Date.parse(attribution.next) <= clock.now() + SOON_MS;
    const isMoving = deliveries.accepted > 0 || store.queued > 0 || seats < daemon.seats || (isAttributing && looks < LONG_LOOKS);
    const isWaiting = outbox.due > 0 || outbox.sending > 0 || isAttributing || isSoon;
    idle = isMoving || isWaiting || github.requests > requests ? 0 : idle + 1;
    if (github.requests > requests) [pause, waits, requests] = [step, 0, github.requests];
    const now = JSON.stringify([deliveries, outbox, store, attribution, requests]);
    if (now !== seen) [seen, since] = [now, performance.now()];
    if (!isWaiting || isMoving) continue;
    const isLong = ++waits > SHORT_STEPS;
    if (isLong && isExact && performance.now() - since < STILL_MS) continue;
    if (isLong) pause = Math.min(2 * pause, LONGEST_PAUSE);
    clock.advance(pause);
    since = performance.now();
  }
}
