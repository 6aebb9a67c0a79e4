// A state's symbol and word as they are shown.
export * from './status_words.js';

// The symbol alone, with its word for screen readers.
export function Symbol({ of, title }) {
  return <span class={`symbol t-${of.tone}`} role="img" aria-label={title || of.word} title={title || of.word}>{of.symbol}</span>;
}

// Symbol and word on a tint.
export function Mark({ of, children }) {
  return <span class={`mark t-${of.tone}`}><span aria-hidden="true">{of.symbol}</span> {children ?? of.word}</span>;
}
