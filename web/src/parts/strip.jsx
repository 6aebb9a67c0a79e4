// Small pictures in a line of text: outcomes of days, and a number over time. Each has its figures as text, too.
import { count, MONTHS, percent, plural, UNKNOWN } from '../format.js';
import { OUTCOME } from '../status.jsx';

const SIGNS = { // in a box of 10 × 10
  green: 'M2.5 5.3 4.3 7 7.5 3.2', red: 'M3 3 7 7M7 3 3 7', failed: 'M5 2.5V5.5M5 7.4V7.5', missed: 'M3.4 3.6Q3.6 2.2 5 2.2 6.6 2.2 6.6 3.6 6.6 4.8 5 5.4V6M5 7.8V7.9',
  skipped: 'M3 5H7', running: 'M2.6 5V5.1M5 5V5.1M7.4 5V5.1',
};

// One outcome as a picture of 10 × 10.
export function Cell({ outcome, x = 0, y = 0, title }) {
  const of = OUTCOME[outcome];
  if (!of) return <g transform={`translate(${x} ${y})`}><circle class="void" cx="5" cy="5" r="1.5" />{title && <title>{title}</title>}</g>;
  return <g class={`t-${of.tone}`} transform={`translate(${x} ${y})`}><rect class="box" x=".5" y=".5" width="9" height="9" rx="2" /><path class="sign" d={SIGNS[outcome]} />{title && <title>{title}</title>}</g>;
}

// The number of days with each outcome: "21 green, 2 red, 1 missed"
export function tally(days) {
  const n = new Map();
  for (const { outcome } of days) if (outcome) n.set(outcome, (n.get(outcome) ?? 0) + 1);
  return Object.keys(OUTCOME).filter((key) => n.has(key)).map((key) => `${count(n.get(key))} ${OUTCOME[key].word.split(',')[0]}`).join(', ');
}

const titleOf = ({ day, outcome }) => `${day}: ${OUTCOME[outcome]?.word ?? 'no run'}`;

// Days in a row, oldest first: [{day, outcome}]
export function Strip({ days, label = 'Periodic runs,' }) {
  return (
    <svg class="strip" width={days.length * 11} height="10" role="img" aria-label={`${label} ${plural(days.length, 'day')}: ${tally(days) || 'none'}`}>
      {days.map((day, i) => <Cell key={day.day} outcome={day.outcome} x={i * 11} title={titleOf(day)} />)}
    </svg>
  );
}

// Days as weeks side by side, Monday on top: [{day, outcome}], oldest first.
export function Calendar({ days, label }) {
  const first = (new Date(days[0].day).getUTCDay() + 6) % 7;
  const weeks = Math.ceil((first + days.length) / 7);
  const placed = days.map((day, i) => ({ ...day, x: Math.floor((first + i) / 7) * 12, y: ((first + i) % 7) * 12 + 14 }));
  const months = placed.filter(({ day, x }, i) => day.endsWith('-01') || (i === 0 && Number(day.slice(8)) < 20)).map(({ day, x }) => ({ x, name: MONTHS[Number(day.slice(5, 7)) - 1] }));
  return (
    <svg class="strip" width={weeks * 12} height={14 + 7 * 12} role="img" aria-label={`${label}: ${tally(days) || 'none'}`}>
      {months.map(({ x, name }) => <text key={x} x={x} y="9">{name}</text>)}
      {placed.map((day) => <Cell key={day.day} outcome={day.outcome} x={day.x} y={day.y} title={titleOf(day)} />)}
    </svg>
  );
}

// The legend, with the outcomes that occur.
export function StripLegend({ days }) {
  const there = Object.keys(OUTCOME).filter((key) => days.some(({ outcome }) => outcome === key));
  return <ul class="legend">{there.map((key) => <li key={key}><svg class="strip" width="10" height="10" aria-hidden="true"><Cell outcome={key} /></svg>{OUTCOME[key].word}</li>)}</ul>;
}

// Shares 0 … 1 as a line; null is a gap.
export function Spark({ values, label, width = 120, height = 24 }) {
  const known = values.filter((v) => v != null);
  const last = known.at(-1);
  const at = (v, i) => `${((i + .5) * width / values.length).toFixed(1)} ${(height - 2 - v * (height - 4)).toFixed(1)}`;
  let line = '';
  values.forEach((v, i) => { if (v != null) line += `${line === '' ? 'M' : 'L'}${at(v, i)}`; });
  const lastAt = values.findLastIndex((v) => v != null);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${label}: ${known.length ? `${percent(known[0])} first, ${percent(last)} last, ${percent(Math.min(...known))} at the lowest` : UNKNOWN}`}>
      <path class="floor" d={`M0 ${height - 1}H${width}`} />
      {line && <path d={line} />}
      {lastAt >= 0 && <circle cx={at(last, lastAt).split(' ')[0]} cy={at(last, lastAt).split(' ')[1]} r="2" />}
    </svg>
  );
}

// Shares of a whole: [{n, of: STATUS.…}]
export function Bar({ parts, label }) {
  const there = parts.filter(({ n }) => n > 0);
  return <div class="bar" role="img" aria-label={label ?? there.map(({ n, of }) => `${count(n)} ${of.word}`).join(', ')}>{there.map(({ n, of }) => <span key={of.word} class={`t-${of.tone}`} style={{ flex: `${n} 1 0px` }} title={`${count(n)} ${of.word}`} />)}</div>;
}
