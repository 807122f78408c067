// Light, dark, or as the system says. The style sheet knows two palettes; which of them is decided here.

export type Theme = 'auto' | 'light' | 'dark';
const STORED = 'portcullis.theme';

export function theme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'auto';
}

export function setTheme(next: Theme): void {
  localStorage.setItem(STORED, next);
  show();
}

function show(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const chosen = theme();
  document.documentElement.dataset['theme'] = chosen === 'auto' ? (dark ? 'dark' : 'light') : chosen;
}

/** Shows the stored theme and follows the system; `changed` is called when that changes. */
export function restoreTheme(changed: () => void): void {
  show();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    show();
    changed();
  });
}
