// A part of a page with its own address.
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

// Facts in pairs: [[label, value], …]; what has no value is left out.
export function Facts({ of }) {
  return <dl class="facts">{of.filter(([, value]) => value != null && value !== false).map(([label, value]) => <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}</dl>;
}

// A number that counts, with its name.
export function Figure({ label, value, note, tone }) {
  return <div class={`figure ${tone ? `t-${tone}` : ''}`}><span class="figure-label">{label}</span><span class="figure-value">{value}</span>{note && <span class="figure-note">{note}</span>}</div>;
}
