// The limit of each wait in a test. It only ends a test that hangs and does not judge speed, because a busy machine is slow.
// PATIENCE=n waits n times as long (valgrind).
const PATIENCE = Number(process.env.PATIENCE ?? 1);

export const WAIT_MS = 600_000 * PATIENCE;

// For a longer wait: at least WAIT_MS.
export const waitAtLeast = (ms = 0) => Math.max(WAIT_MS, ms * PATIENCE);

// The daemon closes a connection on which nothing arrives for five seconds. On a busy machine the test itself may be late by that
// much.
const FIRST_BYTE_MS = 5000;
const CUT = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];
const TRIES = 3;

// Returns the result of send(), and sends again after such a delay, because the daemon has read nothing.
export async function sendPatiently(send) {
  for (let left = TRIES; ; left--) {
    const begun = performance.now();
    try {
      return await send();
    } catch (error) {
      if (left === 1 || !CUT.includes(error.cause?.code ?? error.code) || performance.now() - begun < FIRST_BYTE_MS) throw error;
    }
  }
}
