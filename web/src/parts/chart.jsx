// Lines over time. The library (uPlot) is loaded after the page; the figures are also there as a table, and the arrow keys or the
// pointer choose a day.
import { useEffect, useRef, useState } from 'preact/hooks';
import { MONTHS, utcDay } from '../format.js';
import { Table } from './table.jsx';

const HEIGHT = 190;
const DAY_S = 86_400;
const dayOf = (s) => { const d = new Date(s * 1000); return `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`; };
// The ticks for seconds are whole minutes, hours and days.
export const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const wide = (_, texts) => Math.max(36, ...(texts ?? []).map((text) => text.length * 6.4 + 14));
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function optionsOf(element, { ends, lines, tick, range, steps }, onCursor) {
  const axis = { stroke: token('--quiet'), grid: { stroke: token('--grid'), width: 1 }, ticks: { show: false }, font: `11px ${token('--sans')}` };
  return {
    width: Math.max(200, element.clientWidth), height: HEIGHT, legend: { show: false }, padding: [8, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { range: ends[1] - ends[0] < DAY_S ? [ends[0] - DAY_S, ends[1] + DAY_S] : ends }, y: { range: range ?? ((_, low, high) => (low === high ? (low === 0 ? [0, 1] : [Math.min(0, low * 2), Math.max(0, high * 2)]) : [Math.max(low >= 0 ? 0 : -Infinity, low - (high - low) * .1), high + (high - low) * .1])) } },
    axes: [{ ...axis, size: 30, gap: 8, space: 64, incrs: [1, 2, 3, 7, 14, 28, 91, 182, 365].map((n) => n * DAY_S), values: (_, ticks) => ticks.map(dayOf) }, { ...axis, size: wide, incrs: steps, values: (_, ticks) => ticks.map(tick) }],
    series: [{}, ...lines.map(({ label, points }, i) => ({
      label, stroke: token(`--series-${i % 6 + 1}`), width: 1.75, dash: i % 2 ? [6, 4] : undefined, spanGaps: true, points: { show: points.length < 40, size: 5, fill: token(`--series-${i % 6 + 1}`) },
    }))],
    tzDate: (s) => { const d = new Date(s * 1000); return new Date(d.getTime() + d.getTimezoneOffset() * 60000); },
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx)] },
  };
}

function useDark() {
  const query = matchMedia('(prefers-color-scheme: dark)');
  const [isDark, set] = useState(query.matches);
  useEffect(() => {
    const onChange = () => set(query.matches);
    query.addEventListener('change', onChange);
    return () => query.removeEventListener('change', onChange);
  }, []);
  return isDark;
}

const whenIdle = globalThis.requestIdleCallback ?? ((call) => setTimeout(call, 500));
const notWhenIdle = globalThis.cancelIdleCallback ?? clearTimeout;

// Whether to draw the element: at once when it comes near the window, else when the browser is idle, because a print or a screenshot has
// the whole page.
function useSeen(ref) {
  const [isSeen, see] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) { see(true); observer.disconnect(); } }, { rootMargin: '200px' });
    observer.observe(ref.current);
    const idle = whenIdle(() => see(true));
    return () => {
      observer.disconnect();
      notWhenIdle(idle);
    };
  }, []);
  return isSeen;
}

// at: [ms, …], lines: [{label, points: [number | null, …]}], format: number → text.
// what(i): a further text for a point, for its line and the table. range: of the values, [low, high];
// tick: the text of a number next to the axis, steps: the distances between two of them.
export function LineChart({ title, at, lines, format, tick = format, steps, range, what, name = (ms) => utcDay(ms), nameOf = 'Day' }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [cursor, setCursor] = useState(null);
  const [isOpen, open] = useState(false);
  const isEmpty = !lines.some(({ points }) => points.some((value) => value != null));
  const isSeen = useSeen(box);
  const isDark = useDark();

  useEffect(() => {
    if (!isSeen || isEmpty) return undefined;
    let isOver = false;
    let resize = null;
    import('uplot').then(({ default: UPlot }) => {
      if (isOver) return;
      plot.current = new UPlot(optionsOf(box.current, { ends: [at[0] / 1000, at.at(-1) / 1000], lines, tick, range, steps }, setCursor), [at.map((ms) => ms / 1000), ...lines.map(({ points }) => points)], box.current);
      resize = new ResizeObserver(() => plot.current.setSize({ width: Math.max(200, box.current.clientWidth), height: HEIGHT }));
      resize.observe(box.current);
    });
    return () => {
      isOver = true;
      resize?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isSeen, isDark, at, lines]);

  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !plot.current) return;
    event.preventDefault();
    const i = Math.min(at.length - 1, Math.max(0, (cursor ?? (step > 0 ? -1 : at.length)) + step));
    plot.current.setCursor({ left: plot.current.valToPos(at[i] / 1000, 'x'), top: 1 });
  };
  const i = cursor ?? at.length - 1;
  const values = lines.map(({ label, points }) => `${lines.length > 1 ? `${label} ` : ''}${points[i] == null ? 'not known' : format(points[i])}`).join(', ');

  if (isEmpty) return <figure class="chart" ref={box}><h3>{title}</h3><p class="quiet">Not known yet.</p></figure>;
  return (
    <figure class="chart">
      <h3>{title}</h3>
      {lines.length > 1 && <ul class="legend">{lines.map(({ label }, n) => <li key={label}><svg width="22" height="6" aria-hidden="true"><path d="M0 3H22" stroke={`var(--series-${n % 6 + 1})`} stroke-width="2.5" stroke-dasharray={n % 2 ? '6 4' : undefined} /></svg>{label}</li>)}</ul>}
      <div class="plot" ref={box} tabIndex={0} role="group" aria-label={`${title}: a line chart; arrow keys read it, the table below has its figures`} onKeyDown={onKey} onBlur={() => setCursor(null)} />
      <p class="said" aria-live="polite">{at.length > 0 && <>{name(at[i])}: {values}{what && <> · {what(i)}</>}</>}</p>
      <details onToggle={(event) => open(event.currentTarget.open)}>
        <summary>As a table</summary>
        {isOpen && (
          <Table label={`${title}, as a table`}>
            <thead><tr><th scope="col">{nameOf}</th>{lines.map(({ label }) => <th key={label} scope="col" class="num">{label}</th>)}{what && <th scope="col">Of</th>}</tr></thead>
            <tbody>{at.map((ms, n) => <tr key={n}><th scope="row" class="nowrap">{name(ms)}</th>{lines.map(({ label, points }) => <td key={label} class="num">{points[n] == null ? '—' : format(points[n])}</td>)}{what && <td>{what(n)}</td>}</tr>).reverse()}</tbody>
          </Table>
        )}
      </details>
    </figure>
  );
}
