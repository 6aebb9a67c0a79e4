// One job in full: its result, its environment, each test, and its log.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, withParams } from '../api.js';
import { Page } from '../app.jsx';
import { data } from '../data.js';
import { bytes, count, measure, ownPath, plural, shortSha, visible } from '../format.js';
import { blameText, countStatuses, experimentSentence, extensionText, filterTests, groupTests, jobSentence, otherFacts, suiteTitle, uniqueTests } from '../job_rows.js';
import { useAnswer } from '../live.js';
import { LogViewer } from '../log/viewer.jsx';
import { Change, Foreign, GITHUB, Out, PullRequest, Sha } from '../parts/links.jsx';
import { More } from '../parts/more.jsx';
import { usePages } from '../parts/pages_of.js';
import { Facts, Section } from '../parts/section.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Table } from '../parts/table.jsx';
import { ATTRIBUTION, isRed, jobMark, STATUS, Symbol } from '../status.jsx';
import { Duration, Time } from '../time.jsx';

const ROWS_AT_ONCE = 100; // of a suite
const KINDS = { pull_request: 'pull request', push: 'push', nightly: 'periodic run', experiment: 'experiment for' };
const FORMATS = [['outpost', 'Outpost JSON'], ['junit', 'JUnit XML'], ['ctrf', 'CTRF JSON']];

const nameOf = (job) => (job.workflow && job.workflow !== job.name ? `${job.workflow} / ${job.name}` : job.name);

function Head({ job }) {
  const isWrong = job.conclusion === 'success' && job.test_results?.failed > 0; // the job says that it passed
  const blame = job.next ? '' : blameText(job.tests); // not if the tests are only a part
  const of = isWrong ? STATUS.FAIL : jobMark(job);
  const seconds = job.started_at && job.completed_at ? (Date.parse(job.completed_at) - Date.parse(job.started_at)) / 1000 : null;
  return (
    <div class="lead">
      <h1><Foreign text={nameOf(job)} /></h1>
      <p class="lead-line">
        <span>on <a href={`/accelerators/${job.accelerator}`}><Foreign text={job.accelerator} /></a></span>
        <span>{KINDS[job.kind] ?? job.kind} <Change change={job.experiment && !job.number ? { head_sha: job.experiment.explains } : job} /></span>
        {(job.number || job.experiment) && <span>commit <Sha sha={job.head_sha} repository={job.repository} /></span>}
        {job.log && <a href="#log">log</a>}
        {job.late && <span class="tag" title="Reported after the deadline">late</span>}
      </p>
      {job.experiment && <p class="notice"><strong>An experiment.</strong> {experimentSentence(job)}</p>}
      {!job.current && <p class="notice">This job does not count any more: {job.superseded_by ? <>it was run again as <a href={`/jobs/${job.superseded_by}`}>job {job.superseded_by}</a></> : 'a newer round took its place'}.</p>}
      <p class={`verdict t-${of.tone}`}><span class="symbol" aria-hidden="true">{of.symbol}</span><span><strong>{jobSentence(job)}.</strong>{blame && ` ${blame}.`}{job.message && <> <Foreign text={job.message} /></>}</span></p>
      <Facts of={[
        ['Run', job.run_id && <>{job.url ? <Out href={job.url}><Foreign text={job.run_id} /></Out> : <Foreign text={job.run_id} />}{job.run_attempt > 1 && `, attempt ${job.run_attempt}`}</>],
        ['Started', job.started_at && <Time at={job.started_at} />],
        ['Completed', job.completed_at && <Time at={job.completed_at} />],
        [job.completed_at ? 'Ran for' : 'Running for', job.started_at && <Duration seconds={seconds} since={job.started_at} />],
        ['Machine', job.machine && <Foreign text={job.machine} />],
        ['Vendor’s page', !job.run_id && job.url && <Out href={job.url}>of this job</Out>],
        ['Files', job.artifact_url && <Out href={job.artifact_url}>artifacts</Out>],
      ]} />
    </div>
  );
}

function Environment({ of, repository }) {
  if (!of) return <p class="quiet">The job did not report its environment.</p>;
  const text = (value) => (value ? <Foreign text={String(value)} /> : null);
  const facts = [
    ['Device', text(of.device)], ['Operating system', text(of.os)], ['Driver', text(of.driver)], ['Accelerator', text(of.accelerator)],
    ['PyTorch', (of.torch || of.torch_commit) && <>{text(of.torch)} {/^[0-9a-f]{40}$/.test(of.torch_commit) ? <Sha sha={of.torch_commit} repository={repository} /> : text(of.torch_commit)}</>],
    ['Extension', text(extensionText(of.extension))],
    ...otherFacts(of.extension && typeof of.extension === 'object' ? Object.fromEntries(Object.entries(of.extension).filter(([key]) => key !== 'name' && key !== 'version')) : {}, 'extension').map(([name, value]) => [visible(name), <Foreign text={value} />]),
    ...otherFacts(of).map(([name, value]) => [visible(name), <Foreign text={value} />]),
  ];
  return <div class="panel"><Facts of={facts} /></div>;
}

// CRCR's triage verdict: the vendor's own tool says why the job failed. It is shown as a claim, because Outpost does not check it.
const TRIAGE = { upstream: 'the change in PyTorch', backend: 'the vendor’s backend', infra: 'the vendor’s infrastructure', flake: 'a flaky test', unknown: 'not known' };

function Triage({ of, repository }) {
  if (!of) return null;
  const suspect = of.suspected_upstream;
  return (
    <Section id="triage" title="The vendor’s own analysis">
      <div class="panel">
        <p class="small quiet">A claim of the vendor’s tool. It is not checked here and is never used as evidence.</p>
        <p><Foreign text={of.summary} /></p>
        <Facts of={[
          ['Cause', `${TRIAGE[of.category] ?? of.category}, ${of.confidence} confidence`],
          ['Suspected', suspect && <>{suspect.pr && <PullRequest number={suspect.pr} repository={repository} />}{suspect.pr && suspect.commit && ', '}{suspect.commit && <Sha sha={suspect.commit} repository={repository} />}{suspect.reason && <>: <Foreign text={suspect.reason} /></>}</>],
          ['Failed again on a retry', of.reproduced_on_retry != null && (of.reproduced_on_retry ? 'yes' : 'no')],
          ['Analyzed by', of.analyzer && <Foreign text={[of.analyzer.name, of.analyzer.version, of.analyzer.model].filter(Boolean).join(' ')} />],
          ['Analyzed at', of.analyzed_at && <Foreign text={of.analyzed_at} />],
        ]} />
        {of.evidence?.map((one, i) => (
          <div key={i}>
            <p class="small">{one.job && <Foreign text={one.job} />} {one.test && <Foreign text={one.test} />} {one.log_url && <Out href={one.log_url}>log</Out>}</p>
            {one.excerpt && <pre tabIndex={0}><Foreign text={one.excerpt} /></pre>}
          </div>
        ))}
      </div>
    </Section>
  );
}

// The word for a number of tests.
const TALLIED = { ERROR: 'broke', MISS: 'without a result' };

function Tally({ counts }) {
  return <ul class="plain tally">{Object.keys(STATUS).filter((key) => counts[key]).map((key) => <li key={key}><span class={`symbol t-${STATUS[key].tone}`} aria-hidden="true">{STATUS[key].symbol}</span> {count(counts[key])} {TALLIED[key] ?? STATUS[key].word}</li>)}</ul>;
}

function Row({ test, job, has }) {
  const columns = 2 + has.number + has.duration;
  const place = test.file && `${GITHUB}/${job.repository}/blob/${job.head_sha}/${test.file.split('/').map(encodeURIComponent).join('/')}${test.line ? `#L${test.line}` : ''}`;
  const hasMore = test.message || test.trace || test.file || test.log_url;
  return (
    <>
      <tr class={hasMore ? 'has-more' : undefined}>
        <th scope="row" class="name"><span class="named"><Symbol of={STATUS[test.status]} /><span><code><Foreign text={test.name} /></code>{test.dtype && <> <span class="tag"><Foreign text={test.dtype} /></span></>}</span></span></th>
        {has.number && <td class="num">{test.number && <Foreign text={measure(test.number.value, test.number.unit)} />}</td>}
        {has.duration && <td class="num">{test.duration != null && <Duration seconds={test.duration} />}</td>}
        <td class={isRed(test.status) ? `t-${STATUS[test.status].tone} toned` : 'quiet'} title={ATTRIBUTION[test.attribution]?.text}>{STATUS[test.status].word}{test.attribution && <>: <strong>{ATTRIBUTION[test.attribution].word}</strong></>}</td>
      </tr>
      {hasMore && (
        <tr class="opened"><td colSpan={columns}>
          {test.message && <p class="message"><Foreign text={test.message} /></p>}
          <p class="row small">{test.file && <a class="sha" href={place}><Foreign text={test.file} />{test.line && `:${test.line}`}</a>}{test.log_url && <Out href={test.log_url}>its log</Out>}</p>
          {test.trace && <details open={isRed(test.status) && !test.message}><summary>Trace</summary><pre tabIndex={0}><Foreign text={test.trace} /></pre></details>}
        </td></tr>
      )}
    </>
  );
}

function Suite({ group, job, counts }) {
  const [shown, show] = useState(ROWS_AT_ONCE);
  const has = { number: group.tests.some((t) => t.number), duration: group.tests.some((t) => t.duration != null) };
  const title = suiteTitle(group.suite);
  return (
    <div class="suite">
      <h3>{title === group.suite ? <Foreign text={title} /> : <>{title} <code class="small quiet">{group.suite}</code></>}</h3>
      <Tally counts={counts} />
      <Table label={`Tests of ${title}`.slice(0, 120)}>
        <thead><tr><th scope="col">Test</th>{has.number && <th scope="col" class="num">Measured</th>}{has.duration && <th scope="col" class="num">Took</th>}<th scope="col">Result</th></tr></thead>
        <tbody>{group.tests.slice(0, shown).map((test) => <Row key={`${test.name} ${test.dtype}`} test={test} job={job} has={has} />)}</tbody>
      </Table>
      {group.tests.length > shown && <div class="more"><button type="button" onClick={() => show(shown + ROWS_AT_ONCE * 2)}>Show more</button><span class="small quiet">{count(shown)} of {count(group.tests.length)}</span></div>}
    </div>
  );
}

function Choice({ label, value, onChange, options }) {
  return <label>{label}<select value={value} onChange={(event) => onChange(event.currentTarget.value)}>{options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}</select></label>;
}

// If the first answer has only a part of the tests, all failed ones are requested at once.
function useRed(api, job) {
  const [red, set] = useState([]);
  useEffect(() => {
    if (!job.next) { set([]); return undefined; }
    const ended = new AbortController();
    Promise.all(['FAIL', 'ERROR', 'MISS'].map((status) => get(withParams(api, { status, limit: 500, cursor: null }), { signal: ended.signal })))
      .then((all) => set(all.flatMap(({ body }) => body.tests)), () => {});
    return () => ended.abort();
  }, [job]);
  return red;
}

const ALL = { q: '', status: '', suite: '' };

function Tests({ job, api }) {
  const red = useRed(api, job);
  const pages = usePages({ first: job, next: job.next ?? null, pathOf: (cursor) => withParams(api, { limit: 500, cursor }), itemsOf: (got) => got.tests });
  const tests = useMemo(() => uniqueTests([...job.tests, ...pages.items, ...red]), [job, red, pages.items]);
  const [filter, setFilter] = useState(ALL);
  const found = useMemo(() => groupTests(filterTests(tests, filter)), [tests, filter]);
  const suites = useMemo(() => groupTests(tests), [tests]);
  const counts = useMemo(() => countStatuses(tests), [tests]);
  const total = job.tests_total ?? tests.length;
  const n = job.test_results;
  const isAll = !Object.values(filter).some(Boolean);
  const nFound = found.reduce((sum, group) => sum + group.tests.length, 0);
  const choose = (part) => setFilter({ ...filter, ...part });

  if (tests.length === 0) {
    if (n?.total) return <Section id="tests" title="Tests" aside={plural(n.total, 'test')}><Empty title={`${count(n.passed)} passed, ${count(n.failed)} failed, ${count(n.skipped)} skipped`}><p>Only these numbers were reported. A report with each test (JUnit XML, CTRF or Outpost JSON) would be shown here.</p></Empty></Section>;
    return <Section id="tests" title="Tests"><Empty title={job.status === 'completed' ? 'No test was reported' : 'No test is reported yet'}>{job.status !== 'completed' && <p>They appear when the job sends its report.</p>}</Empty></Section>;
  }
  return (
    <Section id="tests" title="Tests" aside={<>{plural(total, 'test')}, red first{job.tests_cut > 0 && <>; <strong>{count(job.tests_cut)} more were left out of the report</strong></>}</>}>
      <div class="filters">
        <label>Find<input type="search" value={filter.q} placeholder="test or message" onInput={(event) => choose({ q: event.currentTarget.value })} /></label>
        <Choice label="Result" value={filter.status} onChange={(status) => choose({ status })} options={[['', 'every'], ['red', 'red'], ...Object.keys(STATUS).filter((key) => counts[key]).map((key) => [key, `${STATUS[key].word}, ${count(counts[key])}`])]} />
        {suites.length > 1 && <Choice label="Suite" value={filter.suite} onChange={(suite) => choose({ suite })} options={[['', `all ${suites.length}`], ...suites.map(({ suite }) => [suite, suiteTitle(suite).slice(0, 60)])]} />}
        <span class="small quiet" role="status">{plural(nFound, 'test')}{!isAll && <> <button type="button" class="link" onClick={() => setFilter(ALL)}>clear</button></>}</span>
      </div>
      {pages.next && !isAll && <p class="small quiet">Looked for in the {count(tests.length)} tests that are here. Load all to look everywhere.</p>}
      {found.length === 0 ? <Empty title="No test fits" /> : <div class="suites">{found.map((group) => <Suite key={group.suite} group={group} job={job} counts={group.counts} />)}</div>}
      <More pages={pages} shown={tests.length} total={total} what="tests" canAll />
    </Section>
  );
}

function LogPart({ job }) {
  const isOver = job.status === 'completed';
  if (!job.log && isOver) return <p class="quiet">No log was sent{job.url && <>; <Out href={job.url}>the vendor’s page</Out> may have one</>}.</p>;
  if (!job.log && !job.dispatch) return <p class="quiet">No log was sent.</p>;
  return <LogViewer url={`/api/v1/jobs/${job.id}/log`} grows={!isOver} known={job.log} />;
}

function Job({ job, api }) {
  const hasTests = job.tests.length > 0;
  return (
    <>
      <Head job={job} />
      <Triage of={job.triage} repository={data.upstream} />
      <Section id="environment" title="Environment"><Environment of={job.environment} repository={data.upstream} /></Section>
      <Tests job={job} api={api} />
      <Section id="log" title="Log" aside={job.log && bytes(job.log.bytes)}><LogPart job={job} /></Section>
      {hasTests && <p class="row small"><span class="quiet">These results as a file:</span>{FORMATS.map(([format, title]) => <a key={format} href={`/jobs/${job.id}?format=${format}`} download>{title}</a>)}</p>}
    </>
  );
}

export function JobPage({ api }) {
  const answer = useAnswer(api);
  const job = answer.body;
  const title = job ? `${nameOf(job)} · ${job.number ? `#${job.number}` : shortSha(job.head_sha)}`.slice(0, 100) : 'Job';
  return <Page title={title} state={answer.state} api={ownPath(api, data.base)}><Answer answer={answer}>{(body) => <Job job={body} api={api} />}</Answer></Page>;
}
