// The content of a page without data: loading, empty or failed.
import { useMemo } from 'preact/hooks';

export function Empty({ title, children }) {
  return <div class="state"><p class="state-title">{title}</p>{children}</div>;
}

export function Loading() {
  return <div class="state" role="status"><p class="state-title">Loading<span class="dots" aria-hidden="true">…</span></p></div>;
}

const TITLES = { 0: 'The server cannot be reached', 400: 'This page does not exist', 404: 'Nothing is here', 503: 'The server is busy' };

// isPage: the page has nothing else.
export function Failure({ error, retry, isPage = false }) {
  const Title = isPage ? 'h1' : 'p';
  const isPassing = error.status === 0 || error.status >= 500;
  return (
    <div class="state" role="alert">
      <Title class="state-title">{TITLES[error.status] ?? 'The server could not answer'}</Title>
      <p>{error.status === 0 ? 'The page tries again by itself.' : `${error.message.replace(/^./, (c) => c.toUpperCase()).replace(/\.?$/, '.')}`}</p>
      <p>{isPassing && retry ? <button type="button" onClick={retry}>Try again now</button> : <a href="/">To the dashboard</a>}</p>
    </div>
  );
}

// All states of an answer: children(body) once there is a body. It is drawn again when the body or an element of `of` changes, not when
// only the stream's state does, because a page may have thousands of elements.
export function Answer({ answer, of = [], children }) {
  const drawn = useMemo(() => answer.body && children(answer.body), [answer.body, ...of]);
  if (answer.body) return <div class={answer.isOld ? 'page is-old' : 'page'} aria-busy={answer.isOld || undefined}>{drawn}</div>;
  return answer.error ? <Failure error={answer.error} retry={answer.reload} isPage /> : <Loading />;
}
