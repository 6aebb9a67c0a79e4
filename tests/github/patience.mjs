// How long a test waits for what must come. It is there for a test that hangs, and says nothing of how fast anything has to
// be: a machine that is busy with other things takes its time. PATIENCE=n waits n times as long (valgrind).
const PATIENCE = Number(process.env.PATIENCE ?? 1);

export const WAIT_MS = 600_000 * PATIENCE;

// For what takes longer than everything else: never less than WAIT_MS.
export const waitAtLeast = (ms = 0) => Math.max(WAIT_MS, ms * PATIENCE);

// The daemon closes a connection on which nothing arrives for five seconds. A process that gets no processor for so long
// after it connected is late through no fault of the daemon.
const FIRST_BYTE_MS = 5000;
const CUT = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];
const TRIES = 3;

// What send() gives; sends again after such a delay, because the daemon has read nothing then.
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
