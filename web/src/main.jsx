// The entry of all pages: the API path that the server wrote into the page decides which one is loaded
// and drawn.
import { render } from 'preact';
import '../style/app.css';
import { Page } from './app.jsx';
import { data } from './data.js';
import { Failure } from './parts/states.jsx';
import './shared.js';

const PAGES = [
  [/^\/api\/v1\/dashboard$/, () => import('./pages/dashboard.jsx').then((page) => page.DashboardPage)],
  [/^\/api\/v1\/(pulls|commits)\/[^/]+$/, () => import('./pages/change.jsx').then((page) => page.ChangePage)],
  [/^\/api\/v1\/accelerators\/[^/]+$/, () => import('./pages/accelerator.jsx').then((page) => page.AcceleratorPage)],
  [/^\/api\/v1\/jobs\/[^/]+$/, () => import('./pages/job.jsx').then((page) => page.JobPage)],
  [/^\/api\/v1\/nightly$/, () => import('./pages/nightly.jsx').then((page) => page.NightlyPage)],
  [/^\/api\/v1\/platforms$/, () => import('./pages/platforms.jsx').then((page) => page.PlatformsPage)],
  [/^\/api\/v1\/platforms\/[^/]+$/, () => import('./pages/platform.jsx').then((page) => page.PlatformPage)],
];

// For addresses without a page: the server's answer has the reason.
function Nowhere() {
  return <Page title="Not found"><Failure isPage error={{ status: data.status < 400 ? 404 : data.status, message: data.body?.error ?? 'No page has this address.' }} /></Page>;
}

const path = (data.api ?? '').replace(/\?.*$/, '');
const [, load] = PAGES.find(([pattern]) => pattern.test(path)) ?? [];
const Found = load ? await load() : Nowhere;
const root = document.getElementById('app');
root.textContent = '';
render(<Found api={data.api} />, root);
