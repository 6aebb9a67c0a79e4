// A table that scrolls by itself, so the page does not; its head and first column stay visible.
export function Table({ label, class: name = '', children }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={name}>{children}</table>
    </div>
  );
}
