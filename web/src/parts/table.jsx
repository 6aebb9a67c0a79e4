// A table scrolls inside itself, never the page; its head and first column stay in sight.
export function Table({ label, class: name = '', children }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={name}>{children}</table>
    </div>
  );
}
