/** The service tier that a request of this form asks for, in either of its words for it. */
import { type Fields, textOrUndefined } from '../conversation/fields.ts';

/** The tier `fast` in the form's own word (wire/messages.md). */
export const FAST = { key: 'speed', value: 'fast' } as const;

/** Values of `service_tier` that leave the choice to the service. */
const NO_WISH: ReadonlySet<string | undefined> = new Set([undefined, 'auto', 'default']);

export function wantedTier(request: Fields): string | undefined {
  const tier = textOrUndefined(request['service_tier']);
  return request[FAST.key] === FAST.value && NO_WISH.has(tier) ? FAST.value : tier;
}
