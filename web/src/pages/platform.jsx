// One compute platform: how to prepare a machine, install and begin, and the tested versions.
import { Page } from '../app.jsx';
import { visible } from '../format.js';
import { useAnswer } from '../live.js';
import { Copy } from '../parts/copy.jsx';
import { Foreign, Out, Sha } from '../parts/links.jsx';
import { Facts, Section } from '../parts/section.jsx';
import { Commands, Selector } from '../parts/selector.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Table } from '../parts/table.jsx';
import { Mark } from '../status.jsx';
import { Time } from '../time.jsx';
import { BranchState, mustPassText, PLATFORM_STATES, PlatformState, TESTED } from './platforms.jsx';

function Head({ p }) {
  return (
    <div class="lead">
      <h1><Foreign text={p.title || p.name} /></h1>
      <p class="lead-line">
        {p.vendor && <span>by <Foreign text={p.vendor} /></span>}
        <span>{p.integration}</span>
        {p.links?.docs && <Out href={p.links.docs}>documentation</Out>}
        <a href={`/accelerators/${p.name}`}>its tests in full</a>
        <a href="/platforms">all platforms</a>
      </p>
      {p.summary && <p><Foreign text={p.summary} /></p>}
      {p.is_example && <p class="notice"><strong>Example.</strong> Not every fact on this page was verified by the vendor; what was tested is from real jobs.</p>}
      <div class={`verdict t-${PLATFORM_STATES[p.state].tone}`}><PlatformState of={p} /></div>
      <BranchState of={p} />
      <Facts of={[
        ['Device', p.device && <code>torch.device("<Foreign text={p.device} />")</code>],
        ['Extension', p.extension && <>{p.extension.url ? <Out href={p.extension.url}><Foreign text={p.extension.package} /></Out> : <Foreign text={p.extension.package} />}{p.extension.autoload ? ', loaded by itself' : <>, <code>import <Foreign text={p.extension.import} /></code></>}</>],
      ]} />
    </div>
  );
}

function Prepare({ steps }) {
  return (
    <ol class="steps">{steps.map((step, i) => (
      <li key={i}><div class="stack">
        <h3><Foreign text={step.title} /></h3>
        {step.text && <p class="prose"><Foreign text={step.text} /></p>}
        {step.commands?.length > 0 && <Commands lines={step.commands} label={`Commands: ${step.title}`} />}
        {step.url && <p><Out href={step.url}>{visible(step.url)}</Out></p>}
      </div></li>
    ))}</ol>
  );
}

function Tested({ p }) {
  if (p.tested.length === 0) return <Empty title="Nothing was tested yet"><p>Pushes and periodic runs of PyTorch’s branch fill this table. All entries come from their jobs.</p></Empty>;
  return (
    <Table label="Tested versions">
      <thead><tr><th scope="col">PyTorch</th><th scope="col">Operating system</th><th scope="col">Result</th><th scope="col">Must-pass</th><th scope="col">Extension</th><th scope="col">When</th></tr></thead>
      <tbody>{p.tested.map((t, i) => (
        <tr key={i}>
          <th scope="row"><Foreign text={t.torch} /> <span class="tag">{t.build}</span></th>
          <td><Foreign text={t.os} /></td>
          <td><Mark of={TESTED[t.result]} /> {t.is_stale && <Mark of={PLATFORM_STATES.stale} />}</td>
          <td>{mustPassText(t.must_pass)}</td>
          <td><Foreign text={t.extension_version ?? ''} /></td>
          <td class="nowrap"><a href={`/jobs/${t.job}`}><Time at={t.at} /></a>{t.head_sha && <> <Sha sha={t.head_sha} to={`/commits/${t.head_sha}`} /></>}</td>
        </tr>
      ))}</tbody>
    </Table>
  );
}

function Platform({ p }) {
  const code = p.get_started?.code;
  return (
    <>
      <Head p={p} />
      {p.prepare?.length > 0 && <Section id="prepare" title="Prepare the machine"><Prepare steps={p.prepare} /></Section>}
      <Section id="install" title="Install"><Selector choices={null} platforms={[p]} /></Section>
      {p.get_started && (
        <Section id="start" title="Get started">
          <div class="stack">
            {p.get_started.text && <p class="prose"><Foreign text={p.get_started.text} /></p>}
            {code && <div class="commands"><pre tabIndex={0} aria-label="A first program"><code>{visible(code)}</code></pre><Copy text={code} /></div>}
          </div>
        </Section>
      )}
      <Section id="tested" title="Tested" aside="from its jobs, newest first"><Tested p={p} /></Section>
      {p.help?.length > 0 && <Section id="help" title="Get help"><ul>{p.help.map(({ title, url }) => <li key={url}><Out href={url}><Foreign text={title} /></Out></li>)}</ul></Section>}
    </>
  );
}

export function PlatformPage({ api }) {
  const answer = useAnswer(api);
  const p = answer.body;
  return <Page title={(p?.title ?? 'Compute platform').slice(0, 100)} state={answer.state} api={api}><Answer answer={answer}>{(body) => <Platform p={body} />}</Answer></Page>;
}
