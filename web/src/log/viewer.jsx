// A job's log with search and links to lines; it is followed while it grows. Only the visible lines are drawn.
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { bytes, count, plural } from '../format.js';
import { anchorAfterClick, formatAnchor, parseAnchor } from './anchor.js';
import { runsOf, withMatches } from './ansi.js';
import { Copy } from '../parts/copy.jsx';
import { Log } from './log.js';
import { View } from './scroll.js';
import { ERROR_PATTERN, rangesIn, textPattern } from './search.js';

const TYPING_MS = 200;
const REST_MS = 500; // after the last scroll event, in browsers without `scrollend`
const SAID_MS = 3000; // between two announcements of new lines for screen readers

const textOf = (runs) => runs.map(({ text }) => text).join('');

function Line({ line, n, pattern, isPicked, isCurrent, onPick }) {
  const runs = useMemo(() => {
    const plain = runsOf(line.text);
    return pattern ? withMatches(plain, rangesIn(textOf(plain), pattern)) : plain;
  }, [line, pattern]);
  return (
    <>
      <a class="log-number" href={`#L${n}`} tabIndex={-1} aria-label={`Line ${n}`} aria-current={isPicked || undefined} data-n={n} onClick={(event) => onPick(event, n)} />
      <span class="log-text">
        {runs.map(({ text, classes, isMatch }, i) => (isMatch ? <mark key={i} class={isCurrent ? `${classes} is-current` : classes}>{text}</mark> : classes ? <span key={i} class={classes}>{text}</span> : text))}
        {line.more > 0 && <span class="log-more"> … {bytes(line.more)} more on this line; the plain text has it</span>}
      </span>
    </>
  );
}

// Draws again, at most once per frame.
function useFrames() {
  const [, draw] = useReducer((n) => n + 1, 0);
  const isDue = useRef(false);
  return useRef(() => {
    if (isDue.current) return;
    isDue.current = true;
    const frame = () => { isDue.current = false; draw(); };
    if (document.visibilityState === 'hidden') setTimeout(frame, 250);
    else requestAnimationFrame(frame);
  }).current;
}

// Keeps the scrolled element and its drawn lines in step.
function useView(log, isWrapped, draw) {
  const box = useRef(null);
  const rows = useRef(null);
  const view = useRef(null);
  const shown = useRef(0); // the first line drawn
  const before = useRef(0); // the position of the bar before
  const isMoved = useRef(false);
  const isScrolled = useRef(false); // by the user; since then the bar has not been moved to the place of the text
  const rest = useRef(0);
  const [, redraw] = useReducer((n) => n + 1, 0);
  view.current ??= new View();
  const v = view.current;
  v.isWrapped = isWrapped;
  if (v.grow(log.index.lines)) isMoved.current = true;

  const rowOf = (line) => rows.current.children[line - shown.current]; // of the drawn lines, not of the next ones
  const put = () => {
    isMoved.current = false;
    if (box.current.scrollTop !== v.scrollTop) box.current.scrollTop = v.scrollTop;
    before.current = box.current.scrollTop;
  };
  // Without animation: the browser animates the bar over many frames, and a change meanwhile would stop it there.
  const settle = () => {
    if (!rows.current) return;
    const drawn = rows.current.children.length;
    if (v.isWrapped && drawn) v.rowHeight = rows.current.offsetHeight / drawn;
    isScrolled.current = false;
    isMoved.current = true;
    redraw();
  };

  // The bar is moved only after we moved the text, because the user may be moving it.
  useLayoutEffect(() => {
    [shown.current] = v.drawn;
    const { clientHeight } = box.current;
    if (clientHeight && clientHeight !== v.height) { v.height = clientHeight; draw(); }
    const room = Math.max(0, rows.current.offsetHeight - v.height);
    let y = (rowOf(v.top)?.offsetTop ?? 0) + v.offset;
    const isBeyond = isWrapped && !v.isAtEnd && v.drawn[1] === v.lines && y > room;
    if (isBeyond) { v.isAtEnd = true; draw(); }
    if (v.isAtEnd) y = room;
    rows.current.style.transform = `translateY(${-y}px)`;
    if (isMoved.current || v.follows) put();
  });
  useLayoutEffect(settle, [isWrapped]);
  useEffect(() => {
    const seen = new ResizeObserver(draw);
    seen.observe(box.current);
    // The last `scroll` comes after `scrollend`, in the same frame.
    const onEnd = () => { if (isScrolled.current) requestAnimationFrame(settle); };
    box.current.addEventListener('scrollend', onEnd);
    return () => { seen.disconnect(); clearTimeout(rest.current); };
  }, []);

  // Returns true if the user scrolled, not this code.
  const onScroll = () => {
    const at = box.current.scrollTop;
    if (Math.abs(at - before.current) < 1) return false;
    const heightOf = (line) => rowOf(line)?.offsetHeight;
    if (v.isAtEnd && rows.current) {
      const y = rows.current.offsetHeight - v.height;
      const first = [...rows.current.children].findIndex((row) => row.offsetTop + row.offsetHeight > y);
      if (first >= 0) [v.top, v.offset] = [shown.current + first, Math.max(0, y - rows.current.children[first].offsetTop)];
    }
    v.scrolled(before.current, at, heightOf);
    before.current = at;
    isScrolled.current = !v.isDirect;
    clearTimeout(rest.current);
    if (!v.isDirect && !('onscrollend' in window)) rest.current = setTimeout(settle, REST_MS);
    draw();
    return true;
  };
  const show = (line) => {
    v.show(line);
    isMoved.current = true;
    draw();
  };
  return { box, rows, view: v, onScroll, show };
}

// Selects the lines that the address names, and shows them once they have been read.
function useAnchor(log, view, show, section) {
  const [{ anchor, origin }, set] = useState(() => ({ anchor: parseAnchor(location.hash), origin: parseAnchor(location.hash)?.first }));
  const isPending = useRef(anchor !== null);
  useEffect(() => {
    const onHash = () => {
      const next = parseAnchor(location.hash);
      if (!next) return;
      isPending.current = true;
      set({ anchor: next, origin: next.first });
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  useEffect(() => {
    if (!isPending.current || !anchor || view.lines < anchor.first) return; // the drawn state: more may have been read since
    isPending.current = false;
    show(anchor.first - 1);
    section.current?.scrollIntoView({ block: 'start' });
  });
  const put = (next) => {
    set(next);
    history.replaceState(null, '', next.anchor ? formatAnchor(next.anchor) : location.pathname + location.search);
  };
  return {
    anchor, isMissing: anchor !== null && log.index.lines < anchor.first,
    leave: () => { isPending.current = false; },
    pick: (n, isShift) => put(anchorAfterClick(anchor, origin, n, isShift)),
    go: (next) => { isPending.current = true; put({ anchor: next, origin: next.first }); },
    clear: () => { isPending.current = false; put({ anchor: null, origin: null }); },
  };
}

// The search text, and the match that is shown.
function useFinding(log, view, show) {
  const [current, setCurrent] = useState(-1);
  const [kind, setKind] = useState(null); // text, error
  const requested = useRef(null); // the line after which the first match is shown
  const found = log.search?.lines ?? [];

  useEffect(() => {
    if (requested.current === null || !log.search) return;
    const line = log.search.lines.find((one) => one >= requested.current) ?? (log.isLooking ? undefined : log.search.lines[0]);
    if (line === undefined && log.isLooking) return;
    requested.current = null;
    if (line === undefined) return;
    setCurrent(line);
    show(line);
  });
  return {
    current, kind, found,
    find(nextKind, pattern, from) {
      requested.current = pattern ? from : null;
      setCurrent(-1);
      setKind(pattern ? nextKind : null);
      log.find(pattern);
    },
    step(isBackward) {
      const i = log.search?.next(current < 0 ? view.top - 1 : current, isBackward) ?? -1;
      if (i < 0) return;
      setCurrent(found[i]);
      show(found[i]);
    },
    place: current < 0 ? 0 : found.indexOf(current) + 1,
  };
}

function Finding({ finding, log, view, input }) {
  const [text, setText] = useState('');
  const [isExact, setExact] = useState(false);
  const timer = useRef(0);
  const { found, place } = finding;
  const find = (nextText, nextExact, ms) => {
    setText(nextText);
    setExact(nextExact);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => finding.find('text', textPattern(nextText.slice(0, 200), nextExact), view.top), ms);
  };
  const onKey = (event) => {
    if (event.key === 'Enter') { event.preventDefault(); finding.step(event.shiftKey); }
    if (event.key === 'Escape') find('', isExact, 0);
  };
  const n = `${count(found.length)}${log.search?.isMore ? '+' : ''}`;
  const what = finding.kind !== 'error' ? 'found' : found.length === 1 ? 'that looks like an error' : 'that look like errors';
  const said = !log.search ? '' : found.length === 0 ? (log.isLooking ? 'looking…' : finding.kind === 'error' ? 'no line looks like an error' : 'nothing found')
    : `${place ? `${count(place)} of ` : ''}${n} ${found.length === 1 ? 'line' : 'lines'} ${what}${log.isLooking ? ' so far' : ''}`;
  return (
    <div class="log-find" role="search" aria-label="In the log">
      <input ref={input} type="search" value={text} aria-label="Find in the log" aria-keyshortcuts="/" placeholder="Find ( / )" maxLength={200} spellcheck={false} onInput={(event) => find(event.currentTarget.value, isExact, TYPING_MS)} onKeyDown={onKey} />
      <button type="button" class="log-toggle" aria-pressed={isExact} title="Capitals count" aria-label="Capitals count" onClick={() => find(text, !isExact, 0)}>Aa</button>
      <button type="button" onClick={() => { setText(''); finding.find('error', ERROR_PATTERN, 0); }}>First error</button>
      <button type="button" disabled={!found.length} aria-label="Previous" title="Previous (Shift + Enter)" onClick={() => finding.step(true)}>↑</button>
      <button type="button" disabled={!found.length} aria-label="Next" title="Next (Enter)" onClick={() => finding.step(false)}>↓</button>
      <span class="log-said" role="status">{said}</span>
    </div>
  );
}

function GoTo({ go }) {
  const onSubmit = (event) => {
    event.preventDefault();
    const anchor = parseAnchor(`#L${event.currentTarget.elements.line.value.replace(/[\s,.]/g, '')}`);
    if (anchor) go(anchor);
  };
  return <form class="log-goto" onSubmit={onSubmit}><input name="line" inputMode="numeric" aria-label="Go to line, as in 120 or 120-130" placeholder="Line" maxLength={24} autocomplete="off" /></form>;
}

function State({ log, isCut, total }) {
  const { state, index } = log;
  const size = `${plural(index.lines, 'line')}, ${bytes(index.end)}`;
  if (state === 'reading') return <>reading… {size}{total > index.end && ` of ${bytes(total)}`}</>;
  if (state === 'following') return <>{size}, goes on while the job runs</>;
  if (state === 'waiting') return <>{size}; <strong>the server cannot be reached; trying again</strong></>;
  if (state === 'failed') return <>{size}; <strong>the rest cannot be read</strong> <button type="button" class="link" onClick={() => log.read()}>try again</button></>;
  return <>{size}{isCut && <>; <strong>the log is not complete: {total >= 2 ** 28 ? 'Outpost keeps at most 256 MiB' : 'its end was not received'}</strong></>}</>;
}

// Announces new lines to screen readers: the last ones, every few seconds.
function Said({ log, isOn }) {
  const [said, say] = useState('');
  useEffect(() => {
    if (!isOn) { say(''); return undefined; }
    let last = log.index.lines;
    const timer = setInterval(() => {
      const n = log.index.lines;
      if (n === last) return;
      const lines = [];
      for (let i = Math.max(last, n - 3); i < n; i++) lines.push(textOf(runsOf((log.line(i)?.text ?? '').slice(0, 300))));
      say(n - last > 3 ? `${n - last} new lines; ${lines.join('\n')}` : lines.join('\n'));
      last = n;
    }, SAID_MS);
    return () => clearInterval(timer);
  }, [isOn]);
  return <div class="visually-hidden" role="log" aria-label="New lines">{said}</div>;
}

// url: of the log. grows: the job is not over. known: {bytes, complete} of the job's answer, or null.
export function LogViewer({ url, grows, known }) {
  const draw = useFrames();
  const [log] = useState(() => new Log({ url, grows, changed: draw }));
  useEffect(() => { log.read(); return () => log.close(); }, []);
  useEffect(() => log.update(grows, known?.bytes ?? 0), [grows, known?.bytes]);
  if (log.state === 'none') return <p class="quiet">No log was received, or its log was deleted after the retention time.</p>;
  if (log.state === 'ended' && log.index.end === 0) return <p class="quiet">The log is empty.</p>;
  return <Viewer log={log} url={url} grows={grows} known={known} draw={draw} />;
}

function Viewer({ log, url, grows, known, draw }) {
  const [isWrapped, wrap] = useState(false);
  const [follows, setFollows] = useState(grows && !parseAnchor(location.hash));
  const stoppedAt = useRef(0);
  const section = useRef(null);
  const input = useRef(null);
  const { box, rows, view, onScroll, show } = useView(log, isWrapped, draw);
  const stop = () => { if (follows) { stoppedAt.current = log.index.lines; setFollows(false); } };
  const shown = (line) => { stop(); show(line); };
  const anchors = useAnchor(log, view, shown, section);
  const finding = useFinding(log, view, shown);
  view.follows = follows;
  if (follows) view.isAtEnd = true;

  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  const { anchor } = anchors;
  const isGrowing = grows && log.state !== 'ended';
  const onMoved = () => {
    if (!onScroll()) return;
    anchors.leave();
    if (follows && !view.isAtEnd) stop();
    else if (isGrowing && view.isAtEnd && !follows) setFollows(true);
  };
  const onPick = (event, n) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    anchors.pick(n, event.shiftKey);
  };
  const [from, to] = view.drawn;
  const pattern = log.search?.pattern ?? null;
  const name = anchor && (anchor.first === anchor.last ? `Line ${count(anchor.first)}` : `Lines ${count(anchor.first)} to ${count(anchor.last)}`);

  return (
    <div class="log" ref={section}>
      <div class="log-bar">
        <Finding finding={finding} log={log} view={view} input={input} />
        <GoTo go={anchors.go} />
        <button type="button" class="log-toggle" aria-pressed={isWrapped} onClick={() => wrap(!isWrapped)}>Wrap</button>
        {isGrowing && <button type="button" class="log-toggle" aria-pressed={follows} onClick={() => (follows ? stop() : setFollows(true))}>Follow</button>}
        <a href={url}>plain text</a>
      </div>
      <div class="log-view" ref={box} tabIndex={0} role="region" aria-label={`Log, ${plural(log.index.lines, 'line')}`} onScroll={onMoved} data-wrapped={isWrapped || undefined}>
        <div class="log-tall" ref={(element) => { if (element) element.style.height = `${view.tall}px`; }}>
          <div class="log-pane" ref={(element) => { if (element) element.style.height = `${Math.min(view.height, view.tall)}px`; }}>
            <div class="log-rows" ref={rows}>
              {Array.from({ length: to - from }, (_, i) => {
                const n = from + i + 1;
                const line = log.line(n - 1);
                const isPicked = anchor !== null && n >= anchor.first && n <= anchor.last;
                return (
                  <div key={n} class={`log-line${isPicked ? ' is-picked' : ''}${finding.current === n - 1 ? ' is-found' : ''}`}>
                    {line ? <Line line={line} n={n} pattern={pattern} isPicked={isPicked} isCurrent={finding.current === n - 1} onPick={onPick} /> : <span class="log-number" data-n={n} />}
                  </div>
                );
              })}
            </div>
          </div>
        </div>
      </div>
      <div class="log-foot">
        <span><State log={log} isCut={!grows && known?.complete === false} total={known?.bytes ?? 0} /></span>
        {isGrowing && !follows && stoppedAt.current > 0 && <span role="status">Not following{log.index.lines > stoppedAt.current && `: ${plural(log.index.lines - stoppedAt.current, 'new line')}`} <button type="button" class="link" onClick={() => setFollows(true)}>follow again</button></span>}
        {anchors.isMissing && <span role="status">{log.state === 'reading' ? `Line ${count(anchor.first)} is not read yet` : `There is no line ${count(anchor.first)}`}</span>}
        {anchor && !anchors.isMissing && <span class="log-picked">{name} <Copy text={location.href} label="Copy link" /> <button type="button" class="link" onClick={anchors.clear}>clear</button></span>}
      </div>
      <Said log={log} isOn={follows && isGrowing} />
    </div>
  );
}
