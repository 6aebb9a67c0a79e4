// The compute platforms: how to install each, and how well it is tested.
import { Page } from '../app.jsx';
import { stateText } from '../dashboard_state.js';
import { now } from '../data.js';
import { listed, plural } from '../format.js';
import { word } from '../platform_choice.js';
import { useAnswer } from '../live.js';
import { Foreign, Out } from '../parts/links.jsx';
import { Section } from '../parts/section.jsx';
import { Selector } from '../parts/selector.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Mark } from '../status.jsx';
import { Time, useTick } from '../time.jsx';

export const PLATFORM_STATES = {
  tested: { symbol: '✓', word: 'tested', tone: 'pass' },
  red: { symbol: '✗', word: 'red', tone: 'fail' },
  stale: { symbol: '?', word: 'stale', tone: 'miss' },
  untested: { symbol: '–', word: 'not tested', tone: 'skip' },
};

export const TESTED = { green: { symbol: '✓', word: 'green', tone: 'pass' }, red: { symbol: '✗', word: 'red', tone: 'fail' } };

export function mustPassText({ passed, failed, missing, total }) {
  if (!total) return 'no must-pass test is set';
  const rest = [failed && `${failed} failed`, missing && `${missing} without a result`].filter(Boolean);
  return `${passed} of ${total} must-pass tests${rest.length ? `, ${rest.join(', ')}` : ''}`;
}

export function PlatformState({ of }) {
  return <p class="row"><Mark of={PLATFORM_STATES[of.state]} /><span><Foreign text={of.state_text} /></span></p>;
}

// The state on upstream's branch if it is not good: the platform's own state covers the must-pass tests only.
export function BranchState({ of }) {
  useTick();
  const { branch_state: state } = of;
  if (state.tone === 'pass') return null;
  return <p><a href={`/accelerators/${of.name}${of.red_since ? '#red' : ''}`}><Mark of={state}>on the branch: {stateText(state, now())}</Mark></a></p>;
}

function Card({ p }) {
  // The tested version that decides the state: the red one if there is one.
  const newest = (p.state === 'red' && p.tested.find(({ result, is_stale: isStale }) => result === 'red' && !isStale)) || p.tested[0];
  const when = newest && <Time at={newest.at} />;
  const systems = [...new Set(p.install.map(({ os }) => word('os', os)))];
  return (
    <li class={`panel card t-${PLATFORM_STATES[p.state].tone}`}>
      <h3><a href={`/platforms/${p.name}`}><Foreign text={p.title || p.name} /></a></h3>
      <p class="row"><span class="tag">{p.integration}</span>{p.is_example && <span class="tag" title="Not every fact here was verified">example</span>}{p.vendor && <span class="quiet small">by <Foreign text={p.vendor} /></span>}</p>
      {p.summary && <p><Foreign text={p.summary} /></p>}
      <PlatformState of={p} />
      <BranchState of={p} />
      {newest && <p class="small quiet">PyTorch <Foreign text={newest.torch} /> on <Foreign text={newest.os} />: {mustPassText(newest.must_pass)}, {newest.job ? <a href={`/jobs/${newest.job}`}>{when}</a> : when}</p>}
      <p class="small quiet">{systems.length > 0 ? `For ${listed(systems)}` : 'No install instructions yet'}{p.links?.docs && <>; <Out href={p.links.docs}>documentation</Out></>}</p>
    </li>
  );
}

function Platforms({ body }) {
  const { platforms } = body;
  if (platforms.length === 0) {
    return (
      <>
        <h1>Compute platforms</h1>
        <Empty title="No platform is described yet"><p>A vendor adds a <code>platform:</code> block to the accelerator’s file: how its machines are prepared, how PyTorch is installed, how to start. Its jobs add what was tested.</p></Empty>
      </>
    );
  }
  const n = platforms.filter(({ state }) => state === 'tested').length;
  return (
    <>
      <div class="lead">
        <h1>Compute platforms</h1>
        <p class="quiet">Where PyTorch runs, and how it gets there. {n === 0 ? 'None has' : n === 1 ? 'One has' : `${n} have`} recent green must-pass tests, of {plural(platforms.length, 'platform')}.</p>
      </div>
      <Section id="install" title="Install"><Selector choices={body.choices} platforms={platforms} /></Section>
      <Section id="platforms" title="Platforms" aside="tested and green first"><ul class="plain cards">{platforms.map((p) => <Card key={p.name} p={p} />)}</ul></Section>
    </>
  );
}

export function PlatformsPage({ api }) {
  const answer = useAnswer(api);
  return <Page title="Compute platforms" state={answer.state} api={api}><Answer answer={answer}>{(body) => <Platforms body={body} />}</Answer></Page>;
}
