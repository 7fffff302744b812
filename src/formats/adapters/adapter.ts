/** The contract of an adapter: see `index.ts`. */
import type { Conversation, Turn } from '../conversation/conversation.ts';
import type { EncodeTarget, SpokenFormat, TurnDecoder } from '../conversation/format.ts';
import type { Losses } from '../conversation/losses.ts';
import type { CallIds } from './call-ids.ts';

/** The upstream that a conversation is adapted for. */
export interface AdapterContext {
  readonly spoken: SpokenFormat;
  readonly target: EncodeTarget;
  /** Settings that cannot be carried are reported here. */
  readonly losses: Losses;
  /** `response_format` is sent as a tool. */
  readonly outputByTool: boolean;
  /** Ids of calls that the client knows already. */
  readonly callIds: CallIds;
}

/** Undoes an adapter's change in one answer. It may keep state, so each answer needs its own. */
export interface Restoring {
  decoder(inner: TurnDecoder): TurnDecoder;
  /** The same for a complete answer. */
  turn(turn: Turn): Turn;
}

interface Adapted {
  conversation: Conversation;
  /** Absent when the answer needs no change. */
  restoring?: Restoring | undefined;
}

/** Pure but for `losses`. @throws Uncarried when the upstream cannot be given the conversation even so */
export type TurnAdapter = (conversation: Conversation, context: AdapterContext) => Adapted;

/** Applies adapters from the client's side to the upstream's; answers pass them in the opposite order. */
export function adapt(conversation: Conversation, adapters: readonly TurnAdapter[], context: AdapterContext): Adapted {
  let adapted = conversation;
  const all: Restoring[] = [];
  for (const adapter of adapters) {
    const { conversation: next, restoring } = adapter(adapted, context);
    adapted = next;
    if (restoring !== undefined) all.push(restoring);
  }
  return { conversation: adapted, restoring: together(all) };
}

/** @param all from the client's side to the upstream's */
export function together(all: readonly Restoring[]): Restoring | undefined {
  if (all.length <= 1) return all[0];
  return {
    decoder: (inner) => all.reduceRight((decoder, restoring) => restoring.decoder(decoder), inner),
    turn: (turn) => all.reduceRight((shown, restoring) => restoring.turn(shown), turn),
  };
}
