// A time shows its age, and the exact time on hover. One timer updates all of them.
import { useEffect, useReducer } from 'preact/hooks';
import { now } from './data.js';
import { ago, duration, roughly, UNKNOWN, utc } from './format.js';

const listeners = new Set();
let timer = null;

function tick() {
  for (const listener of listeners) listener();
}

// Draws the component again as time passes: every 10 s.
export function useTick() {
  const [, redraw] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    listeners.add(redraw);
    timer ??= setInterval(tick, 10_000);
    return () => {
      listeners.delete(redraw);
      if (listeners.size === 0) { clearInterval(timer); timer = null; }
    };
  }, []);
}

// at: RFC 3339 or null. "3 min ago"
export function Time({ at, none = UNKNOWN }) {
  useTick();
  if (!at) return <span class="quiet">{none}</span>;
  const ms = Date.parse(at);
  return <time dateTime={at} title={utc(ms)}>{ago(ms, now())}</time>;
}

// The time since then: "2 d"
export function Since({ at }) {
  useTick();
  const ms = Date.parse(at);
  return <time dateTime={at} title={`since ${utc(ms)}`}>{roughly(Math.max(0, (now() - ms) / 1000))}</time>;
}

// Seconds; a duration that has not ended counts on from `since`.
export function Duration({ seconds, since }) {
  useTick();
  if (seconds == null && since) return <Since at={since} />;
  return <span title={seconds == null ? undefined : `${seconds} s`}>{duration(seconds)}</span>;
}
