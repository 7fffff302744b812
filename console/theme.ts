/** Light or dark: as the system has it, unless the viewer chose one. */
import { useEffect, useState } from 'preact/hooks';

export type Theme = 'auto' | 'light' | 'dark';

const STORED = 'gatehouse-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

function chosen(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'auto';
}

function apply(): void {
  const theme = chosen();
  document.documentElement.dataset['theme'] = theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme;
}

export function startTheme(): void {
  apply();
  dark.addEventListener('change', apply);
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(chosen);
  useEffect(() => {
    if (theme === 'auto') localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, theme);
    apply();
  }, [theme]);
  return [theme, setTheme];
}
