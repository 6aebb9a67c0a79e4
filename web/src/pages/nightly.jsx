// Periodic runs: the tests that went from green to red and back, day by day and by accelerator, and the commits between.
import { useEffect, useRef, useState } from 'preact/hooks';
import { withParams } from '../api.js';
import { Page } from '../app.jsx';
import { data } from '../data.js';
import { PERIODIC } from '../examples.js';
import { count, MONTHS, ownPath, plural, safeUrl, testName, visible } from '../format.js';
import { useAnswer } from '../live.js';
import { apiOf, CAUSES, CELL_STATES, daysInWords, FILTERS, nightlySentence, rangeText, splitCells, withFilter } from '../nightly_rows.js';
import { Foreign, Out, Sha } from '../parts/links.jsx';
import { More } from '../parts/more.jsx';
import { usePages } from '../parts/pages_of.js';
import { Section } from '../parts/section.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Table } from '../parts/table.jsx';
import { Mark, OUTCOME, STATUS, Symbol } from '../status.jsx';
import { Time } from '../time.jsx';

const TYPING_MS = 300;
const SPANS = [7, 14, 30, 90];
const AT_ONCE = 6; // tests drawn with the first paint: enough for a tall window

const dayHead = (day, i) => (i === 0 || day.endsWith('-01') ? `${Number(day.slice(8))} ${MONTHS[Number(day.slice(5, 7)) - 1]}` : String(Number(day.slice(8))));

function RunCell({ run, day }) {
  if (!run?.outcome) return <td class="day quiet"><span aria-hidden="true">·</span><span class="visually-hidden">no run</span></td>;
  const of = OUTCOME[run.outcome] ?? OUTCOME.running;
  const title = `${day}: ${of.word}${run.reason ? `, ${run.reason}` : ''} (${CAUSES[run.cause] ?? run.cause})`;
  const url = safeUrl(ownPath(run.url, data.base));
  const mark = <Symbol of={of} title={title} />;
  return <td class="day">{url ? <a class="cell-link" href={url}>{mark}</a> : mark}</td>;
}

function Newest({ run }) {
  if (!run) return <td class="quiet newest">none on these days</td>;
  const of = OUTCOME[run.outcome] ?? OUTCOME.running;
  return (
    <td class="newest">
      <span class="row"><Mark of={of}>{run.state === 'reading' ? 'reading the heads' : of.word.split(',')[0]}</Mark><span class="small quiet"><Time at={run.ended_at ?? run.started_at ?? run.due_at} />, {CAUSES[run.cause] ?? run.cause}</span></span>
      {run.reason && <span class="small clamp" title={visible(run.reason)}><Foreign text={run.reason} /></span>}
      {(run.upstream_sha || run.cause === 'self_report') && <span class="small quiet"> <Sha sha={run.upstream_sha} />{run.source_sha && <> with source <code title={run.source_sha}>{run.source_sha.slice(0, 7)}</code></>}</span>}
    </td>
  );
}

function Next({ schedule }) {
  if (!schedule) return <td class="quiet">by the vendor</td>;
  const cron = [schedule.cron].flat().join(', ');
  return <td class="nowrap">{schedule.next ? <Time at={schedule.next} /> : <span class="quiet">never</span>}{schedule.skip_next && <> <span class="tag">left out</span></>}<br /><code class="small quiet" title="cron, UTC">{cron}</code></td>;
}

function Runs({ body }) {
  const { days } = body;
  return (
    <Section id="runs" title="Runs" aside={`${days[0]} to ${days.at(-1)}, UTC`}>
      <Table label="Periodic runs by day" class="matrix days">
        <thead><tr><th scope="col">Accelerator</th><th scope="col">Newest</th><th scope="col">Next due</th>{days.map((day, i) => <th key={day} scope="col" class="day" title={day}><span aria-hidden="true">{dayHead(day, i)}</span><span class="visually-hidden">{day}</span></th>)}</tr></thead>
        <tbody>{body.accelerators.map((a) => (
          <tr key={a.name}>
            <th scope="row" class="who"><span class="row"><a class="who-name" href={`/accelerators/${a.name}`}><Foreign text={a.title || a.name} /></a><span class="tag">{a.level}</span></span></th>
            <Newest run={a.runs.findLast((run) => run)} />
            <Next schedule={a.schedule} />
            {a.runs.map((run, i) => <RunCell key={days[i]} run={run} day={days[i]} />)}
          </tr>
        ))}</tbody>
      </Table>
      <ul class="legend">{Object.keys(OUTCOME).filter((key) => body.accelerators.some(({ runs }) => runs.some((run) => run?.outcome === key))).map((key) => <li key={key}><span class={`symbol t-${OUTCOME[key].tone}`} aria-hidden="true">{OUTCOME[key].symbol}</span>{OUTCOME[key].word}</li>)}</ul>
    </Section>
  );
}

// A test's days as signs, oldest first; each links to its job.
function Days({ cell, days, title }) {
  return (
    <ul class="plain strip-days" aria-label={`${title}: ${daysInWords(cell.days)}`}>
      {cell.days.map((day, i) => {
        const of = day && STATUS[day.status];
        if (!of) return <li key={i} class="strip-day is-void" title={`${days[i]}: no result`} aria-hidden="true" />;
        const label = `${days[i]}: ${of.word}`;
        return <li key={i} class={`strip-day t-${of.tone}`}>{day.job ? <a href={`/jobs/${day.job}`} title={label} aria-label={label} tabIndex={-1}>{of.symbol}</a> : <span title={label} role="img" aria-label={label}>{of.symbol}</span>}</li>;
      })}
    </ul>
  );
}

function MarkOf({ mark }) {
  if (!mark) return <span class="quiet">not on record</span>;
  return <>{mark.day} <Sha sha={mark.upstream_sha} />{mark.source_sha && <span class="small quiet"> source <code title={mark.source_sha}>{mark.source_sha.slice(0, 7)}</code></span>}{mark.job && <> <a href={`/jobs/${mark.job}`}>job</a></>}</>;
}

function Between({ cell }) {
  const { commits } = cell;
  return (
    <div class="between">
      <dl class="facts"><div><dt>First bad</dt><dd><MarkOf mark={cell.first_bad} /></dd></div><div><dt>Last good</dt><dd><MarkOf mark={cell.last_good} /></dd></div>
        {commits && <div><dt>Between them</dt><dd><Out href={commits.url}>{commits.count == null ? 'compare' : plural(commits.count, 'commit')}</Out></dd></div>}</dl>
      {commits?.known?.length > 0 && <ol class="plain commits">{commits.known.map((c) => <li key={c.sha}><Sha sha={c.sha} /> <Foreign text={c.title} />{c.author && <span class="quiet small"> <Foreign text={c.author} /></span>}</li>)}</ol>}
      {commits && commits.count > (commits.known?.length ?? 0) && <p class="small quiet">{commits.known?.length ? `${count(commits.known.length)} of them are on record.` : 'GitHub’s comparison lists them.'}</p>}
    </div>
  );
}

function Cell({ cell, days, title }) {
  const of = CELL_STATES[cell.state];
  const hasMore = cell.first_bad || cell.last_good || cell.commits;
  return (
    <li class="night">
      <span class="night-state"><Mark of={of} /></span>
      <a class="night-name" href={`/accelerators/${cell.accelerator}`}><Foreign text={title} /></a>
      <Days cell={cell} days={days} title={title} />
      <span class="night-since small quiet">{cell.since && `since ${cell.since}`}</span>
      {hasMore && <details class="night-more"><summary>{rangeText(cell) ?? 'Between'}</summary><Between cell={cell} /></details>}
    </li>
  );
}

function Test({ test, days, titles }) {
  const [isOpen, open] = useState(false);
  const [main, quiet] = splitCells(test.cells);
  const shown = main.length === 0 || isOpen ? [...main, ...quiet] : main;
  return (
    <li class="panel night-test">
      <h3><code><Foreign text={testName(test)} /></code></h3>
      <ul class="plain nights-list">{shown.map((cell) => <Cell key={cell.accelerator} cell={cell} days={days} title={titles.get(cell.accelerator) ?? cell.accelerator} />)}</ul>
      {main.length > 0 && quiet.length > 0 && <button type="button" class="link small" aria-expanded={isOpen} onClick={() => open(!isOpen)}>{isOpen ? 'Hide' : 'Show'} {plural(quiet.length, 'accelerator')} where it is not red</button>}
    </li>
  );
}

// False until the page has been painted once: an effect runs after that.
function usePainted() {
  const [isPainted, set] = useState(false);
  useEffect(() => set(true), []);
  return isPainted;
}

// The filters are in the address, so that a link shows the same view to others.
function useSearch() {
  const [search, set] = useState(location.search);
  useEffect(() => {
    const onPop = () => set(location.search);
    addEventListener('popstate', onPop);
    return () => removeEventListener('popstate', onPop);
  }, []);
  return [search, (name, value, isTyped) => {
    const next = withFilter(location.search, name, value);
    history[isTyped ? 'replaceState' : 'pushState'](null, '', location.pathname + next + location.hash);
    set(next);
  }];
}

function Typed({ label, name, search, put, placeholder }) {
  const given = new URLSearchParams(search).get(name) ?? '';
  const [text, setText] = useState(given);
  const timer = useRef(0);
  useEffect(() => setText(given), [given]);
  const onInput = (event) => {
    const { value } = event.currentTarget;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => put(name, value.trim(), true), TYPING_MS);
  };
  return <label>{label}<input type="search" value={text} placeholder={placeholder} maxLength={256} onInput={onInput} /></label>;
}

function Chips({ body, search, put }) {
  const is = new URLSearchParams(search).get('state') ?? '';
  const states = Object.keys(CELL_STATES).filter((key) => body.counts[key] || key === is);
  if (states.length === 0) return null;
  return (
    <div class="chips" role="group" aria-label="State">
      <button type="button" class="chip" aria-pressed={!is} onClick={() => put('state', '')}>all</button>
      {states.map((key) => <button key={key} type="button" class="chip" aria-pressed={is === key} title={CELL_STATES[key].text} onClick={() => put('state', is === key ? '' : key)}><span class={`symbol t-${CELL_STATES[key].tone}`} aria-hidden="true">{CELL_STATES[key].symbol}</span>{CELL_STATES[key].word} {count(body.counts[key] ?? 0)}</button>)}
    </div>
  );
}

function Filters({ body, search, put }) {
  const params = new URLSearchParams(search);
  const select = (name, label, options) => <label>{label}<select value={params.get(name) ?? options[0][0]} onChange={(event) => put(name, event.currentTarget.value)}>{options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select></label>;
  const spans = [...new Set([...SPANS, Number(params.get('days')) || 14])].sort((a, b) => a - b);
  return (
    <div class="stack filters-stack">
      <Chips body={body} search={search} put={put} />
      <div class="filters">
        <Typed label="Find" name="q" search={search} put={put} placeholder="part of a test’s name" />
        <Typed label="Suite" name="suite" search={search} put={put} placeholder="every" />
        {select('accelerator', 'Accelerator', [['', 'every'], ...body.accelerators.map(({ name, title }) => [name, (title || name).slice(0, 60)])])}
        <label>Days<select value={params.get('days') ?? '14'} onChange={(event) => put('days', event.currentTarget.value === '14' ? '' : event.currentTarget.value)}>{spans.map((n) => <option key={n} value={String(n)}>{n} days</option>)}</select></label>
        <label>Until<input type="date" value={params.get('until') ?? ''} onChange={(event) => put('until', event.currentTarget.value)} /></label>
      </div>
    </div>
  );
}

function Tests({ body, api, search, put }) {
  const pages = usePages({ first: body, next: body.next, pathOf: (cursor) => withParams(api, { cursor }), itemsOf: (got) => got.tests });
  const tests = [...body.tests, ...pages.items];
  const drawn = usePainted() ? tests : tests.slice(0, AT_ONCE);
  const titles = new Map(body.accelerators.map(({ name, title }) => [name, title || name]));
  const isFiltered = FILTERS.some((name) => name !== 'days' && name !== 'until' && new URLSearchParams(search).has(name));
  return (
    <Section id="tests" title="Tests" aside="worst first">
      <Filters body={body} search={search} put={put} />
      {tests.length === 0
        ? <Empty title={isFiltered ? 'No test matches' : 'No test was reported on these days'}>{isFiltered && <button type="button" onClick={() => ['state', 'accelerator', 'suite', 'q'].forEach((name) => put(name, '', true))}>Show all</button>}</Empty>
        : <ul class="plain night-tests">{drawn.map((test) => <Test key={testName(test)} test={test} days={body.days} titles={titles} />)}</ul>}
      <More pages={pages} shown={tests.length} total={null} what="tests" />
    </Section>
  );
}

function NoRuns() {
  return (
    <Empty title="No accelerator has periodic runs yet">
      <p>Give an accelerator a schedule in its file; times are UTC. At that time Outpost sends the heads of {data.upstream || 'upstream'} and of the vendor’s own source to its runners.</p>
      <pre>{PERIODIC}</pre>
      <p>Results of a vendor’s own nightly runs appear here, too.</p>
    </Empty>
  );
}

function Nightly({ body, api, search, put }) {
  const said = nightlySentence(body);
  if (body.accelerators.length === 0 && body.tests.length === 0) return <><h1>Periodic runs</h1><NoRuns /></>;
  return (
    <>
      <div class="lead"><h1 class={`headline t-${said.tone}`}>{said.symbol && <span class="symbol" aria-hidden="true">{said.symbol}</span>} <span>{said.text}</span></h1></div>
      <Runs body={body} />
      <Tests body={body} api={api} search={search} put={put} />
    </>
  );
}

export function NightlyPage({ api }) {
  const [search, put] = useSearch();
  const requested = search === location.search && apiOf(search) === apiOf(new URL(api, 'http://page').search) ? api : apiOf(search);
  const answer = useAnswer(requested);
  return <Page title="Periodic runs" state={answer.state} api={requested}><Answer answer={answer} of={[requested, search]}>{(body) => <Nightly body={body} api={requested} search={search} put={put} />}</Answer></Page>;
}
