import { type Fields, fieldsOf } from '../conversation/fields.ts';
import type { DirectTarget } from './index.ts';

/** The members of `provider.options` for the provider of the target that its adapter allows. */
export function optionsFor(
  { options }: { options: Readonly<Record<string, unknown>> },
  { providerId }: DirectTarget,
  allowed: readonly string[],
): Fields {
  return Object.fromEntries(Object.entries(fieldsOf(options[providerId])).filter(([name]) => allowed.includes(name)));
}
