// Keeps the answers of a page current: when the server sends an event, the page requests the answer again with its ETag. The
// stream reconnects by itself; without a stream the page polls every 30 s. A hidden page closes its stream, because a browser has
// few connections for each host, and after a reconnect the first event comes at once.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get } from './api.js';
import { data } from './data.js';

const POLL_MS = 30_000;
const LOOK_MS = 10_000;

// The name of an API path for /api/v1/events: "/api/v1/pulls/7?limit=5" is "pulls/7".
export const watchOf = (api) => decodeURI(api.replace(/^\/api\/v1\//, '').replace(/\?.*$/, ''));

// Calls onChange at each change and onState with "live" or "reconnecting". Returns the function that ends it.
export function watch(path, onChange, onState) {
  let source = null;
  let timer = null;
  let looked = Date.now();

  const close = () => {
    source?.close();
    source = null;
    clearTimeout(timer);
    timer = null;
  };
  const open = () => {
    close();
    source = new EventSource(`/api/v1/events?watch=${encodeURIComponent(path)}`);
    source.addEventListener('open', () => onState('live'));
    source.addEventListener('change', onChange);
    source.addEventListener('error', () => {
      onState('reconnecting');
      if (source?.readyState !== EventSource.CLOSED || timer) return; // the browser stops trying when the answer is not a stream
      timer = setTimeout(() => { onChange(); open(); }, POLL_MS);
    });
  };
  const follow = () => (document.visibilityState === 'hidden' ? close() : open());
  // After sleep or a change of the network, the connection may be dead.
  const look = () => {
    const isAfterSleep = Date.now() - looked > LOOK_MS + POLL_MS;
    looked = Date.now();
    if (isAfterSleep) follow();
  };

  document.addEventListener('visibilitychange', follow);
  addEventListener('online', follow);
  const looking = setInterval(look, LOOK_MS);
  follow();
  return () => {
    document.removeEventListener('visibilitychange', follow);
    removeEventListener('online', follow);
    clearInterval(looking);
    close();
  };
}

// The answer of one path of the API, kept current.
//   {body, error: ApiError | null, state: "live" | "reconnecting" | "stale" | "still", at: ms, reload()}
// The first answer is the one in the page, if it is of this path. An error after a good answer keeps the answer, and
// state is "stale" then. isLive false: one request only.
export function useAnswer(api, { isLive = true } = {}) {
  const first = () => (api === data.api && data.body !== null
    ? { api, body: data.status < 400 ? data.body : null, etag: data.status < 400 ? data.etag : null, error: data.status < 400 ? null : new ApiError(data.status, data.body.error ?? `The server answered ${data.status}.`) }
    : { api, body: null, etag: null, error: null });
  const [answer, setAnswer] = useState(first);
  const [stream, setStream] = useState(null);
  const held = useRef(answer);

  const put = (next) => { held.current = next; setAnswer(next); };
  const reload = useRef(null);

  useEffect(() => {
    let isOver = false;
    let inFlight = null;
    let isPending = false;
    let retry = null;
    if (held.current.api !== api) put({ ...held.current, api, etag: null, error: null, isOld: held.current.body !== null });

    const ask = async () => {
      if (inFlight) { isPending = true; return; }
      inFlight = new AbortController();
      clearTimeout(retry);
      try {
        const got = await get(api, { etag: held.current.etag, signal: inFlight.signal });
        if (isOver) return;
        if (!got.unchanged) put({ api, body: got.body, etag: got.etag, error: null });
        else if (held.current.error) put({ ...held.current, error: null });
      } catch (error) {
        if (isOver) return;
        const isGone = error.status === 404 || error.status === 400;
        put({ ...held.current, error, ...(isGone ? { body: null, etag: null } : {}) });
        if (error.status === 0 || error.status >= 500) retry = setTimeout(ask, (error.retryAfter ?? 5) * 1000);
      } finally {
        inFlight = null;
        if (isPending && !isOver) { isPending = false; ask(); }
      }
    };
    reload.current = ask;
    if (held.current.body === null && !held.current.error || held.current.isOld) ask();
    const isGone = held.current.error && held.current.error.status < 500 && held.current.error.status > 0;
    const end = isLive && !isGone ? watch(watchOf(api), ask, setStream) : null;
    return () => {
      isOver = true;
      end?.();
      inFlight?.abort();
      clearTimeout(retry);
    };
  }, [api, isLive]);

  const isGone = answer.error && !answer.body && answer.error.status >= 400 && answer.error.status < 500;
  const state = !isLive || isGone ? 'still' : answer.error && answer.body ? 'stale' : stream ?? 'connecting';
  return { body: answer.body, error: answer.error, isOld: Boolean(answer.isOld), state, reload: () => reload.current?.() };
}
