// Light, dark, or as the system says.

export type Theme = 'auto' | 'light' | 'dark';
const STORED = 'portcullis.theme';

export function theme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'auto';
}

export function setTheme(next: Theme): void {
  localStorage.setItem(STORED, next);
  restoreTheme();
}

export function restoreTheme(): void {
  const chosen = theme();
  if (chosen === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
}
