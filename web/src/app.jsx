// The frame of every page.
import { data } from './data.js';
import { visible } from './format.js';

const NAV = [['/', 'Dashboard'], ['/nightly', 'Periodic runs'], ['/platforms', 'Platforms']];
const LIVE = {
  live: ['●', 'Live', 'This page updates itself'],
  connecting: ['○', 'Connecting', 'Connecting to the stream of updates'],
  reconnecting: ['◌', 'Reconnecting', 'The stream of updates was cut off; reconnecting'],
  stale: ['△', 'Not up to date', 'The last request failed; trying again'],
};

function isHere(path) {
  return path === '/' ? location.pathname === '/' : location.pathname === path || location.pathname.startsWith(`${path}/`);
}

function Live({ state }) {
  const [symbol, word, title] = LIVE[state] ?? [];
  return <p class={`live is-${state}`} role="status" title={title}>{word && <><span aria-hidden="true">{symbol}</span> {word}</>}</p>;
}

// state: of useAnswer(); undefined for a page that is not live. api: the page's data.
export function Page({ title, state, api = data.api, children }) {
  if (title) document.title = `${visible(title)} · Outpost`;
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <header class="top">
        <a class="brand" href="/"><svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true"><rect width="16" height="16" rx="3" class="brand-box" /><path d="M4 8.5 7 11.5 12.5 5" class="brand-tick" /></svg>Outpost</a>
        <nav aria-label="Pages">{NAV.map(([path, word]) => <a key={path} href={path} aria-current={isHere(path) ? 'page' : undefined}>{word}</a>)}</nav>
        <Live state={state} />
      </header>
      <main id="main" tabIndex={-1}>{children}</main>
      <footer class="bottom">
        {api && <a href={api}>This page as JSON</a>}
        <a href="/feed.xml">Feed of regressions</a>
        {data.upstream && <a href={`https://github.com/${data.upstream}`}>{data.upstream}</a>}
        <span>Outpost {data.version}</span>
      </footer>
    </>
  );
}
