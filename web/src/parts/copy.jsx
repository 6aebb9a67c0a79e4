import { useState } from 'preact/hooks';

// Copies text, and shows that it did.
export function Copy({ text, label = 'Copy' }) {
  const [said, say] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied');
    } catch {
      say('Not allowed');
    }
    setTimeout(say, 2000, '');
  };
  return <button type="button" class="copy" onClick={copy}><span aria-live="polite">{said || label}</span></button>;
}
