// Waits until the daemon has nothing more to do now. What waits for a budget of GitHub's or for a pause gets the time that it
// waits for: the clock moves.
import { setTimeout as sleep } from 'node:timers/promises';

const WRITE_PAUSE = 1100; // what a content write has to wait for another one
const LONGEST_PAUSE = 300_000;
const PATIENCE_LOOKS = 4000;

// wanted: so many looks in a row must find it idle
export async function settle({ daemon, github, clock }, wanted) {
  let pause = WRITE_PAUSE, { requests } = github;
  for (let idle = 0, looks = 0; idle < wanted; looks++) {
    const status = await daemon.get('/api/v1/status');
    if (looks > PATIENCE_LOOKS) throw new Error(`not settled: ${JSON.stringify(status)}`);
    const { deliveries, outbox, store, attribution } = status;
    const isMoving = deliveries.accepted > 0 || store.queued > 0;
    const isWaiting = outbox.due > 0 || outbox.sending > 0 || (attribution?.due ?? 0) > 0;
    idle = isMoving || isWaiting ? 0 : idle + 1;
    pause = github.requests > requests ? WRITE_PAUSE : Math.min(2 * pause, LONGEST_PAUSE);
    requests = github.requests;
    if (isWaiting && !isMoving) clock.advance(pause);
    else await sleep(1);
  }
}
