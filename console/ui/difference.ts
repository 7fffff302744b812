/** What a form changes. */
import { useRef } from 'preact/hooks';

/**
 * The members of `body` that differ from those it had when the form was opened: saving it leaves alone what another
 * administrator has changed meanwhile.
 * @param together members that the gateway accepts only together
 */
export function useDifference<B extends object>(body: B, together: readonly (keyof B)[] = []): Partial<B> {
  const opened = useRef(body).current;
  const names = Object.keys(body) as (keyof B)[];
  const changed = new Set(names.filter((name) => JSON.stringify(body[name]) !== JSON.stringify(opened[name])));
  if (together.some((name) => changed.has(name))) for (const name of together) changed.add(name);
  return Object.fromEntries([...changed].map((name) => [name, body[name]])) as Partial<B>;
}
