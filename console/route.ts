/**
 * Where the console is: a path and parameters in the fragment (`#/requests?model=a`), so that every state is a link, the
 * back button works, nothing of it is sent to a server, and any path prefix will do.
 */
import { useCallback, useEffect, useState } from 'preact/hooks';

interface Place {
  path: string;
  params: URLSearchParams;
}

export function currentPlace(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#/, '').split(/\?(.*)/s);
  return { path: path === '' ? '/' : path, params: new URLSearchParams(query) };
}

type Params = Readonly<Record<string, string | number | boolean | undefined | null>>;

/** Empty values are left out. */
export function link(path: string, params: Params = {}): string {
  const pairs = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const query = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return `#${path}${query === '' ? '' : `?${query}`}`;
}

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(currentPlace);
  useEffect(() => {
    const changed = () => setPlace(currentPlace());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return place;
}

/** Parameters of the current place, and how to change some of them. Filters begin again at the first page. */
export function useParams(): { params: URLSearchParams; set(changes: Params, replace?: boolean): void } {
  const { params } = usePlace();
  const set = useCallback((changes: Params, replace = false) => {
    const { path, params: now } = currentPlace();
    go(link(path, { ...Object.fromEntries(now), offset: undefined, cursor: undefined, ...changes }), replace);
  }, []);
  return { params, set };
}
