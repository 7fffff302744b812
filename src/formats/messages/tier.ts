/** The service tier requested by `service_tier` or `speed`. */
import { type Fields, textOrUndefined } from '../conversation/fields.ts';

/** How this format requests the tier `fast`. */
export const FAST = { key: 'speed', value: 'fast' } as const;

/** Values of `service_tier` that leave the choice to the service. */
const NO_WISH: ReadonlySet<string | undefined> = new Set([undefined, 'auto', 'default']);

export function wantedTier(request: Fields): string | undefined {
  const tier = textOrUndefined(request['service_tier']);
  return request[FAST.key] === FAST.value && NO_WISH.has(tier) ? FAST.value : tier;
}
