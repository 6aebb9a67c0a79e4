// Build × system × package × platform × language → the commands.
import { useState } from 'preact/hooks';
import { visible } from '../format.js';
import { choiceFromUrl, choiceOf, chosen, entriesOf, firstChoice, matching, nearest, optionsOf, urlOfChoice, whyNone, word } from '../platform_choice.js';
import { Copy } from './copy.jsx';
import { Foreign } from './links.jsx';

const LEGENDS = { build: 'PyTorch build', os: 'Operating system', package: 'Package', platform: 'Compute platform', version: 'Version', language: 'Language' };
const NOTES = { offered: '', 'not offered': 'not offered', none: 'not together with the rest' };

const SIGNS = { 'not offered': '✗', none: '–' };

function osHere() {
  const text = navigator.userAgentData?.platform ?? navigator.platform ?? '';
  return /mac/i.test(text) ? 'macos' : /win/i.test(text) ? 'windows' : 'linux';
}

function Group({ dimension, options, value, titles, onChoose }) {
  return (
    <fieldset class="choice">
      <legend>{LEGENDS[dimension]}</legend>
      <div class="choice-options">
        {options.map((option) => (
          <label key={option.value} class={`option${option.state === 'offered' ? '' : ' is-lacking'}`} title={option.why ?? (NOTES[option.state] || undefined)}>
            <input type="radio" name={dimension} value={option.value} checked={option.value === value} onChange={() => onChoose(dimension, option.value)} />
            <span><Foreign text={titles?.get(option.value) ?? word(dimension, option.value)} />{option.state !== 'offered' && option.value !== value && <span class="option-note" aria-label={NOTES[option.state]}>{SIGNS[option.state]}</span>}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Commands({ lines, label }) {
  return <div class="commands"><pre tabIndex={0} aria-label={label}><code>{lines.map((line) => visible(line)).join('\n')}</code></pre><Copy text={lines.join('\n')} label="Copy" /></div>;
}

function After({ platform }) {
  const e = platform.extension;
  if (!e) return null;
  if (e.autoload) return <p>No import is needed: PyTorch loads <code><Foreign text={e.package} /></code> by itself.</p>;
  return <p>Programs that use it begin with <code>import torch, <Foreign text={e.import} /></code>.</p>;
}

function Found({ entries, platform }) {
  const [entry, ...others] = entries;
  const release = entry.torch ? `PyTorch ${entry.torch}` : 'PyTorch’s nightly build';
  return (
    <>
      {entry.offered
        ? <><p class="row"><strong>{visible(release)}</strong>{platform.extension && <span>with <code><Foreign text={platform.extension.package} /></code></span>}</p><Commands lines={entry.commands} label="What to type" /><After platform={platform} /></>
        : <p class="notice t-error"><strong><span aria-hidden="true">! </span>{visible(release)} is not offered here.</strong> {entry.why_not && <Foreign text={`${entry.why_not.replace(/^./, (c) => c.toUpperCase()).replace(/\.?$/, '.')}`} />}</p>}
      {entry.offered && entry.note && <p><Foreign text={entry.note} /></p>}
      {others.length > 0 && (
        <ul class="plain stack">{others.map((other, i) => (
          <li key={i}>{other.offered ? <details><summary>PyTorch {visible(other.torch ?? '')}</summary><Commands lines={other.commands} label={`What to type for PyTorch ${other.torch}`} />{other.note && <p><Foreign text={other.note} /></p>}</details>
            : <span class="quiet">PyTorch {visible(other.torch ?? '')} is not offered: <Foreign text={other.why_not ?? ''} /></span>}</li>
        ))}</ul>
      )}
    </>
  );
}

function None({ entries, choice, title, onNear }) {
  const near = nearest(entries.filter((e) => e.offered), choice, ['platform']);
  return (
    <div class="notice">
      <p><strong><span aria-hidden="true">– </span>Not available.</strong> <Foreign text={whyNone(entries, choice, title)} /></p>
      {near && <p><button type="button" onClick={() => onNear(choiceOf(near))}>Use {['os', 'package', 'language', 'build'].map((d) => word(d, near[d])).join(', ')}{near.version && <>, <Foreign text={near.version} /></>}</button></p>}
    </div>
  );
}

// choices: of the API; platforms: one or more. The choice is in the address.
export function Selector({ choices, platforms }) {
  const entries = entriesOf(platforms);
  const [choice, set] = useState(() => firstChoice(entries, choiceFromUrl(location.search), osHere()));
  if (!choice) return <p class="quiet">No install instructions yet.</p>;
  const put = (next) => {
    set(next);
    history.replaceState(null, '', urlOfChoice(next) + location.hash);
  };
  const platform = platforms.find(({ name }) => name === choice.platform) ?? platforms[0];
  const has = (d) => [...new Set(entries.map((e) => e[d]))];
  const inOrder = (d) => [...(choices?.[d] ?? []).filter((value) => has(d).includes(value)), ...has(d).filter((value) => !choices?.[d]?.includes(value))];
  const versions = [...new Set(entries.filter((e) => e.platform === choice.platform).map((e) => e.version))];
  const values = { build: inOrder('build'), os: inOrder('os'), package: inOrder('package'), language: inOrder('language'), platform: platforms.filter(({ install }) => install.length).map(({ name }) => name), version: versions };
  const found = matching(entries, choice);
  const rows = ['build', 'os', 'package', 'platform', 'version', 'language'].filter((d) => d === 'platform' ? platforms.length > 1 : d === 'version' ? versions.length > 1 || versions[0] !== '' : true);
  const options = Object.fromEntries(rows.map((d) => [d, optionsOf(entries, choice, d, values[d])]));
  const kinds = new Set(rows.flatMap((d) => options[d].filter(({ state, value }) => state !== 'offered' && value !== choice[d]).map(({ state }) => state)));
  const onChoose = (d, value) => {
    const next = chosen(entries, choice, d, value);
    put(next);
  };
  return (
    <div class="selector panel">
      <form class="choices" onSubmit={(event) => event.preventDefault()}>
        {rows.map((d) => <Group key={d} dimension={d} value={choice[d]} titles={d === 'platform' ? new Map(platforms.map(({ name, title }) => [name, title || name])) : null} options={options[d]} onChoose={onChoose} />)}
      </form>
      {kinds.size > 0 && <p class="small quiet" aria-hidden="true">{[...kinds].map((kind) => `${SIGNS[kind]} ${NOTES[kind]}`).join(', ')}</p>}
      <div class="selected" aria-live="polite">
        {found.length ? <Found entries={found} platform={platform} /> : <None entries={entries} choice={choice} title={platform.title || platform.name} onNear={put} />}
      </div>
    </div>
  );
}

