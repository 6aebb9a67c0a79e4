// How long a test waits for what must come. It is there for a test that hangs, and says nothing of how fast anything has to
// be: a machine that is busy with other things takes its time. PATIENCE=n waits n times as long (valgrind).
const PATIENCE = Number(process.env.PATIENCE ?? 1);

export const WAIT_MS = 600_000 * PATIENCE;

// For what takes longer than everything else: never less than WAIT_MS.
export const waitAtLeast = (ms = 0) => Math.max(WAIT_MS, ms * PATIENCE);
