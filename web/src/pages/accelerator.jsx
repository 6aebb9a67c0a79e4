// One accelerator in full: its state, its level, its days and its numbers.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, withParams } from '../api.js';
import { Page } from '../app.jsx';
import { stateText } from '../dashboard_state.js';
import { data, now } from '../data.js';
import { SCHEDULE } from '../examples.js';
import { count, duration, listed, measure, ownPath, percent, plural, safeUrl, shortSha, visible } from '../format.js';
import { checklist, criterionWord } from '../level.js';
import { useAnswer } from '../live.js';
import { LineChart, TIME_STEPS } from '../parts/chart.jsx';
import { Change, Foreign, Out, Sha } from '../parts/links.jsx';
import { More } from '../parts/more.jsx';
import { usePages } from '../parts/pages_of.js';
import { Facts, Figure, Section } from '../parts/section.jsx';
import { Answer, Empty, Failure, Loading } from '../parts/states.jsx';
import { Calendar, StripLegend, tally } from '../parts/strip.jsx';
import { Table } from '../parts/table.jsx';
import { jobMark, Mark, OUTCOME, Symbol } from '../status.jsx';
import { Duration, Time, useTick } from '../time.jsx';

const percentTick = (value) => `${Math.round(value * 100)} %`;

function Head({ a }) {
  useTick();
  const { state } = a;
  return (
    <div class="lead">
      <h1><Foreign text={a.title || a.name} /> <span class="tag">{a.level}</span></h1>
      <p class="lead-line">
        {a.vendor && <span class="clamp">by <Foreign text={a.vendor} /></span>}
        {a.links.docs && <Out href={a.links.docs}>documentation</Out>}
        {a.links.help && <Out href={a.links.help}>contact</Out>}
        {a.oncall.length > 0 && <span>on call {a.oncall.map((login, i) => <span key={login}>{i > 0 && ', '}<Out href={`https://github.com/${encodeURIComponent(login)}`}>{login}</Out></span>)}</span>}
        <a href={`/badge/${a.name}.svg`}>badge</a>
      </p>
      {a.level === 'L1' ? <p class="notice">At level L1 its results are not shown.</p>
        : <p class={`verdict t-${state.tone}`}><span class="symbol" aria-hidden="true">{state.symbol}</span><span><strong>{stateText(state, now()).replace(/^./, (c) => c.toUpperCase())}</strong>{a.health === 'unhealthy' && <>: red on most recent unrelated changes, so it is not counted until it is green again</>}{a.last_report && <>; last report <Time at={a.last_report} /></>}</span></p>}
    </div>
  );
}

function Figures({ a }) {
  const n = a.numbers;
  return (
    <Section id="numbers" title="In numbers" aside={`the last ${n.days} days`}>
      <div class="figures">
        <Figure label="Pass rate" value={percent(n.pass_rate)} note={`${count(n.push_runs_green)} of ${plural(n.push_runs, 'run')}`} />
        <Figure label="Deadlines met" value={percent(n.deadlines_met)} note={a.deadlines_missed_30d ? `${plural(a.deadlines_missed_30d, 'deadline')} missed` : `${plural(n.dispatches, 'dispatch', 'dispatches')}`} />
        <Figure label="Queue time (median)" value={duration(n.queue_p50)} note={n.queue_p90 !== null && `p90 ${duration(n.queue_p90)}`} />
        <Figure label="Run time (median)" value={duration(n.run_p50)} note={n.run_p90 !== null && `p90 ${duration(n.run_p90)}`} />
        <Figure label="Mean time to recovery" value={duration(n.reaction_time)} note={plural(n.red_episodes, 'red episode')} />
      </div>
    </Section>
  );
}

function Red({ red, isSilence }) {
  const isOver = Date.parse(red.overdue_at) <= now();
  return (
    <Section id="red" title={isSilence ? 'No report on the branch' : 'Red on the branch'} aside={<>since <Time at={red.since} /></>}>
      <div class="panel stack">
        <Facts of={[
          [isSilence ? 'First without' : 'First bad', red.first_bad && <><Sha sha={red.first_bad.sha} to={ownPath(safeUrl(red.first_bad.url), data.base) ?? undefined} />, <Time at={red.first_bad.at} /></>],
          ['Last good', red.last_good ? <><Sha sha={red.last_good.sha} to={ownPath(safeUrl(red.last_good.url), data.base) ?? undefined} />, <Time at={red.last_good.at} /></> : 'none recorded'],
          ['Between them', red.first_bad && red.last_good && <Out href={`https://github.com/${data.upstream}/compare/${red.last_good.sha}...${red.first_bad.sha}`}>compare</Out>],
          ['To be resolved', red.overdue_at && <>{isOver ? <strong>overdue, due </strong> : ''}<Time at={red.overdue_at} /> <span class="quiet">(72 hours)</span></>],
          ['Issue', red.issue_url && <Out href={red.issue_url}>{red.issue_url.replace(/^https:\/\/github\.com\//, '').replace('/issues/', '#')}</Out>],
        ]} />
        {red.tests?.length > 0 && <ul class="tests">{red.tests.map((t, i) => <li key={i}><code><Foreign text={typeof t === 'string' ? t : `${t.suite}/${t.name ?? t.test}${t.dtype ? ` (${t.dtype})` : ''}`} /></code></li>)}</ul>}
      </div>
    </Section>
  );
}

const MET = { symbol: '✓', word: 'met', tone: 'pass' };
const NOT_MET = { symbol: '✗', word: 'not met', tone: 'fail' };
const NOT_KNOWN = { symbol: '?', word: 'not known', tone: 'quiet' };

function Level({ a }) {
  const { next, days, jobs, upstream, rows, unmetNow } = checklist(a);
  if (rows.length === 0) return null;
  const missing = rows.filter(({ met }) => met === false || (next && met === null));
  const said = a.proposal.silent ? `no job in ${a.criteria.down.days} days`
    : next === null ? (missing.length ? `${a.level} is the highest level; ${plural(missing.length, 'requirement')} not met` : `${a.level} is the highest level, and its requirements are met`)
    : missing.length === 0 ? `it meets the numbers of ${next}; the operator decides` : `${plural(missing.length, 'requirement')} of ${next} not met`;
  const markOf = ({ met }) => (met === null ? NOT_KNOWN : met ? MET : NOT_MET);
  return (
    <Section id="level" title={`Level ${a.level}`} aside={said}>
      <Table label={`Requirements of ${next ?? a.level}`}>
        <thead><tr><th scope="col">{next ?? a.level} requirement</th><th scope="col" class="num">Current</th><th scope="col" class="num">Required</th></tr></thead>
        <tbody>{rows.map((row) => <tr key={row.name}><th scope="row"><span class="named"><Symbol of={markOf(row)} /><span>{row.word}</span></span></th><td class={row.met === false ? 'num t-fail toned' : 'num'}>{row.value}</td><td class="num">{row.required}</td></tr>)}</tbody>
      </Table>
      <p class="small quiet">From {plural(jobs, 'job')} of pull requests in {days} days{upstream > 0 && <>; {plural(upstream, 'job')} that only upstream failed {upstream === 1 ? 'is' : 'are'} left out of the pass rate</>}.</p>
      {next && unmetNow.length > 0 && <p class="notice t-error">Requirements of {a.level} that are not met: {listed(unmetNow.map(criterionWord))}.</p>}
    </Section>
  );
}

const line = (label, trend, of) => ({ label, points: trend.map(of) });

function Trends({ trend }) {
  const lines = useMemo(() => ({
    at: trend.map(({ day }) => Date.parse(day)),
    pass: [line('green', trend, (d) => d.pass_rate)],
    queue: [line('median', trend, (d) => d.queue_p50), line('p90', trend, (d) => d.queue_p90)],
    run: [line('median', trend, (d) => d.run_p50), line('p90', trend, (d) => d.run_p90)],
    flaky: [line('flaky', trend, (d) => {
      const n = d.tests.pass + d.tests.fail + d.tests.error + d.tests.miss;
      return n ? d.flaky / n : null;
    })],
  }), [trend]);
  const runsOf = (i) => plural(trend[i].runs, 'run');
  if (!trend.some(({ runs }) => runs > 0)) return <Section id="trends" title="Trends"><Empty title="Nothing has run in the last 90 days" /></Section>;
  return (
    <Section id="trends" title="Trends" aside={`${plural(trend.length, 'day')}, UTC`}>
      <div class="charts">
        <LineChart title="Pass rate" at={lines.at} lines={lines.pass} format={percent} tick={percentTick} range={[0, 1.02]} what={runsOf} />
        <LineChart title="Flaky among the tests" at={lines.at} lines={lines.flaky} format={percent} what={runsOf} />
        <LineChart title="Queue time" at={lines.at} lines={lines.queue} format={duration} steps={TIME_STEPS} what={runsOf} />
        <LineChart title="Time of a run" at={lines.at} lines={lines.run} format={duration} steps={TIME_STEPS} what={runsOf} />
      </div>
    </Section>
  );
}

function Run({ run }) {
  const of = OUTCOME[run.outcome];
  const url = ownPath(safeUrl(run.url), data.base);
  const body = <Mark of={of ?? OUTCOME.running} />;
  return <span class="row">{url ? <a href={url}>{body}</a> : body}<Time at={run.started_at ?? run.due_at} />{run.reason && <Foreign class="small quiet" text={run.reason} />}</span>;
}

function Periodic({ a }) {
  const [isOpen, open] = useState(false);
  const there = a.calendar.filter(({ outcome }) => outcome);
  const s = a.schedule;
  if (!s && there.length === 0) return <Section id="periodic" title="Periodic runs"><Empty title="No schedule"><p>A <code>schedule</code> trigger in <code>accelerators.d/{a.name}.yml</code> has it tested by itself:</p><pre>{SCHEDULE}</pre></Empty></Section>;
  return (
    <Section id="periodic" title="Periodic runs" aside={<a href={`/nightly?accelerator=${encodeURIComponent(a.name)}`}>test by test</a>}>
      <div class="panel stack">
        {s && <Facts of={[
          ['Schedule (UTC)', [s.cron].flat().map((cron) => <code key={cron} class="cron">{cron}</code>)],
          ['Next', s.skip_next ? <>skipped, by the operator</> : s.next && <Time at={s.next} />],
          ['Last', s.last && <Run run={s.last} />],
        ]} />}
        {there.length > 0 && <>
          <div class="scroll bare" role="region" tabIndex={0} aria-label="Calendar of periodic runs" ref={(box) => { if (box) box.scrollLeft = box.scrollWidth; }}><Calendar days={a.calendar} label={`Periodic runs of ${plural(a.calendar.length, 'day')}`} /></div>
          <StripLegend days={a.calendar} />
          <p class="small quiet">In {plural(a.calendar.length, 'day')}: {tally(a.calendar)}.</p>
          <details onToggle={(event) => open(event.currentTarget.open)}>
            <summary>As a table</summary>
            {isOpen && <Table label="Periodic runs, as a table" class="calendar-table"><thead><tr><th scope="col">Day</th><th scope="col">Outcome</th></tr></thead><tbody>{there.map((d) => {
              const url = ownPath(safeUrl(d.url), data.base);
              return <tr key={d.day}><th scope="row" class="nowrap">{url ? <a href={url}>{d.day}</a> : d.day}</th><td><Mark of={OUTCOME[d.outcome]} /></td></tr>;
            }).reverse()}</tbody></Table>}
          </details>
        </>}
      </div>
    </Section>
  );
}

function Benchmark({ of }) {
  const { at, lines } = useMemo(() => ({ at: of.points.map((p) => Date.parse(p.at)), lines: [{ label: 'value', points: of.points.map((p) => p.value) }] }), [of]);
  const what = (i) => <><Sha sha={of.points[i].sha} to={`/commits/${of.points[i].sha}`} />{of.points[i].job && <>, <a href={`/jobs/${of.points[i].job}`}>job</a></>}</>;
  return <LineChart title={visible(`${of.name}${of.dtype ? ` (${of.dtype})` : ''}${of.unit ? `, ${of.unit}` : ''}`)} at={at} lines={lines} format={(v) => measure(v, of.unit)} tick={(v) => measure(v)} what={what} />;
}

const DAYS = [7, 30, 90];

function Numbers({ a }) {
  const [days, choose] = useState(90);
  const path = `/api/v1/accelerators/${a.name}/numbers?days=${days}&limit=12`;
  const [first, set] = useState({ body: null, error: null });
  const [tries, again] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    get(path, { signal: ended.signal }).then(({ body }) => set({ body, error: null }), (error) => { if (!ended.signal.aborted) set({ body: null, error }); });
    return () => ended.abort();
  }, [path, a.last_report, tries]);
  const pages = usePages({ first: first.body, next: first.body?.next ?? null, pathOf: (cursor) => withParams(path, { cursor }), itemsOf: (body) => body.series });
  const series = [...first.body?.series ?? [], ...pages.items];
  const suites = [...new Set(series.map(({ suite }) => suite))];
  return (
    <Section id="benchmarks" title="Measured" aside="numbers that tests reported, each with the commit it was measured at">
      {first.error ? <Failure error={first.error} retry={() => again(tries + 1)} /> : !first.body ? <Loading /> : <>
        <div class="filters"><div class="chips" role="group" aria-label="Days">{DAYS.map((n) => <button key={n} type="button" class="chip" aria-pressed={n === days} onClick={() => choose(n)}>{n} days</button>)}</div></div>
        {series.length === 0 ? <Empty title={`No test reported a number in ${days} days`}><p>A test of a report that has a <code>number</code> with a <code>unit</code> is drawn here.</p></Empty>
          : suites.map((suite) => <div key={suite} class="stack suite"><h3><Foreign text={suite} /></h3><div class="charts">{series.filter((s) => s.suite === suite).map((s) => <Benchmark key={`${s.name} ${s.dtype} ${s.unit}`} of={s} />)}</div></div>)}
        <More pages={pages} shown={series.length} what="numbers" />
      </>}
    </Section>
  );
}

function JobRow({ job }) {
  const n = job.tests;
  const parts = n ? [['fail', 'failed'], ['error', 'broke'], ['miss', 'without a result'], ['pass', 'passed'], ['skip', 'skipped']].filter(([key]) => n[key]) : [];
  return (
    <tr>
      <th scope="row" class="what"><a href={`/jobs/${job.id}`}><Foreign text={job.workflow === job.name ? job.name : `${job.workflow} / ${job.name}`} /></a></th>
      <td><Mark of={jobMark(job)} />{job.late && <> <span class="tag">late</span></>}</td>
      <td class="nowrap"><Change change={job} />{job.number && <span class="small quiet"> {shortSha(job.head_sha)}</span>}{job.kind === 'nightly' && <span class="small quiet"> periodic</span>}</td>
      <td class="small">{parts.length ? parts.map(([key, word]) => `${count(n[key])} ${word}`).join(', ') : <span class="quiet">no tests</span>}</td>
      <td class="num">{duration(job.queued)}</td>
      <td class="num"><Duration seconds={job.duration} since={job.status === 'in_progress' ? job.started_at : null} /></td>
      <td class="nowrap"><Time at={job.completed_at ?? job.started_at} /></td>
    </tr>
  );
}

function Jobs({ a }) {
  const pages = usePages({ first: a, next: a.jobs_next, pathOf: (cursor) => `/api/v1/accelerators/${a.name}/jobs?limit=100&cursor=${encodeURIComponent(cursor)}`, itemsOf: (body) => body.jobs });
  const jobs = [...a.jobs, ...pages.items];
  return (
    <Section id="jobs" title="Jobs" aside="newest first">
      {jobs.length === 0 ? <Empty title="No job has been reported yet" /> : (
        <Table label="Newest jobs">
          <thead><tr><th scope="col">Job</th><th scope="col">Conclusion</th><th scope="col">Change</th><th scope="col">Tests</th><th scope="col" class="num">Waited</th><th scope="col" class="num">Ran</th><th scope="col">When</th></tr></thead>
          <tbody>{jobs.map((job) => <JobRow key={job.id} job={job} />)}</tbody>
        </Table>
      )}
      <More pages={pages} shown={jobs.length} what="jobs" />
    </Section>
  );
}

const KINDS = { github: 'GitHub Actions', webhook: 'a CI of its own', pull: 'machines that ask for work', infra: 'the shared repository' };

// Whether a runner takes experiments: tests that run again to show the cause of a failure.
const RERUNS = { none: <span class="quiet">no</span>, tests: 'the red tests', whole: 'everything' };

function Runners({ a }) {
  return (
    <Section id="runners" title="Runners">
      {a.experiments && <p class="small quiet">Reruns took <Duration seconds={a.experiments.seconds_24h} /> of the <Duration seconds={a.experiments.seconds_allowed_24h} /> that they may take in 24 hours{a.experiments.share > 0 && `: ${Math.round(100 * a.experiments.share)} % of the time of all jobs, or half an hour where that is less`}{a.experiments.pending > 0 && `; ${plural(a.experiments.pending, 'rerun')} pending`}.</p>}
      {a.experiments?.newest_loss && <p class="small">Of the reruns that ended in the last 24 hours, {count(a.experiments.done_24h)} counted, {count(a.experiments.void_24h)} proved nothing and {count(a.experiments.expired_24h)} did not finish in time. The newest loss: <Foreign text={a.experiments.newest_loss} />.</p>}
      <Table label="Runners and machines">
        <thead><tr><th scope="col">Runner</th><th scope="col">Kind</th><th scope="col">Reruns</th><th scope="col">Machines</th></tr></thead>
        <tbody>{a.runners.map((r) => (
          <tr key={r.name}>
            <th scope="row"><Foreign text={r.name} /></th><td>{KINDS[r.kind] ?? r.kind}</td><td>{RERUNS[r.reruns] ?? r.reruns}</td>
            <td>{r.machines?.length ? <ul class="plain">{r.machines.map((m) => <li key={m.name}><Foreign text={m.name} /> <Mark of={m.busy ? { symbol: '…', word: 'busy', tone: 'running' } : { symbol: '•', word: 'idle', tone: 'plain' }} /> <span class="small quiet">seen <Time at={m.last_seen} none="never" /></span></li>)}</ul> : <span class="quiet">{r.kind === 'pull' ? 'none has asked yet' : 'the vendor’s own'}</span>}</td>
          </tr>
        ))}</tbody>
      </Table>
    </Section>
  );
}

function Accelerator({ a }) {
  return (
    <>
      <Head a={a} />
      {a.red && <Red red={a.red} isSilence={a.red_by === 'silence'} />}
      {a.level !== 'L1' && <>
        <Figures a={a} />
        <Level a={a} />
        <Trends trend={a.trend} />
        <Periodic a={a} />
        <Numbers a={a} />
        <Jobs a={a} />
      </>}
      <Runners a={a} />
    </>
  );
}

export function AcceleratorPage({ api }) {
  const answer = useAnswer(api);
  return <Page title={answer.body?.title || answer.body?.name || 'Accelerator'} state={answer.state} api={api}><Answer answer={answer}>{(body) => <Accelerator a={body} />}</Answer></Page>;
}
