// A part of a page with an address of its own.
export function Section({ id, title, aside, children }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <div class="section-head">
        <h2 id={`${id}-title`}><a class="anchor" href={`#${id}`}>{title}</a></h2>
        {aside && <div class="aside">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

// Facts in pairs: [[label, value], …]; a pair without a value is left out.
export function Facts({ of }) {
  return <dl class="facts">{of.filter(([, value]) => value != null && value !== false).map(([label, value]) => <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}</dl>;
}

// An important number with its name.
export function Figure({ label, value, note, tone }) {
  return <div class={`figure ${tone ? `t-${tone}` : ''}`}><span class="figure-label">{label}</span><span class="figure-value">{value}</span>{note && <span class="figure-note">{note}</span>}</div>;
}
