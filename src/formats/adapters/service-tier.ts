/** Replaces the client's service tier by the one that is requested from the endpoint. */
import type { TurnAdapter } from './adapter.ts';

export const serviceTier: TurnAdapter = (conversation, { target }) => {
  if (target.serviceTier === undefined) return { conversation };
  const { serviceTier: _wanted, ...settings } = conversation.settings;
  const tier = target.serviceTier;
  return { conversation: { ...conversation, settings: tier === null ? settings : { ...settings, serviceTier: tier } } };
};
