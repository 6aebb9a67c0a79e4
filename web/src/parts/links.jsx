// Links to commits, pull requests, jobs and people.
import { data } from '../data.js';
import { ownPath, safeUrl, shortSha, visible } from '../format.js';

export const GITHUB = 'https://github.com';

// Text from outside: shown as it is, but with invisible characters made visible.
export function Foreign({ text, class: name }) {
  return <bdi class={name}>{visible(text ?? '')}</bdi>;
}

// An address from outside: a link only if its scheme is safe.
export function Out({ href, children, ...rest }) {
  const url = safeUrl(ownPath(href, data.base));
  return url ? <a href={url} rel="noreferrer nofollow" {...rest}>{children}</a> : <span>{children}</span>;
}

export function Sha({ sha, repository = data.upstream, to }) {
  if (!sha) return <span class="quiet">{shortSha(sha)}</span>;
  return <a class="sha" href={to ?? `${GITHUB}/${repository}/commit/${sha}`} title={sha}>{shortSha(sha)}</a>;
}

// The page of a change: {number, head_sha}
export const changePath = ({ number, head_sha: sha }) => (number ? `/pulls/${number}` : `/commits/${sha}`);

export function Change({ change }) {
  if (!change.number && !change.head_sha) return <span class="quiet">{shortSha(null)}</span>;
  return <a href={changePath(change)} title={change.head_sha}>{change.number ? `#${change.number}` : shortSha(change.head_sha)}</a>;
}

export function PullRequest({ number, repository = data.upstream }) {
  return <a href={`${GITHUB}/${repository}/pull/${number}`}>{repository}#{number}</a>;
}
