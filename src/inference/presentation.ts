/** How a translated answer is shown to its client: names and ids of calls as the client knows them, hidden thinking left out. Pure. */
import { type CallIds, distinctDecoder, distinctTurn } from '../formats/conversation/call-ids.ts';
import type { Conversation, Turn } from '../formats/conversation/conversation.ts';
import type { TurnDecoder } from '../formats/conversation/format.ts';
import { hidingDecoder, hidingTurn } from '../formats/conversation/hide-thinking.ts';
import { type ThinkingMemory, ThinkingTap } from '../formats/conversation/kept-thinking.ts';
import { namedTurn, namingDecoder, type OwnNames } from '../formats/conversation/short-names.ts';
import { type OutputTool, outputDecoder, outputTurn } from '../formats/output-tool/index.ts';

/** What is known of an answer before it comes: the ids that are taken, and where its thinking is kept. */
export interface AnswerKnown {
  ids: CallIds;
  memory: ThinkingMemory | undefined;
}

/** What the client of a translated answer does not see as it came: thinking that it excluded, a tool that stands for its format. */
export class Presentation {
  readonly #hides: boolean;
  readonly #tool: OutputTool | undefined;
  readonly #ids: CallIds;
  readonly #names: OwnNames | undefined;
  readonly #memory: ThinkingMemory | undefined;

  constructor(
    { reasoning }: Conversation,
    tool: OutputTool | undefined,
    { ids, memory }: AnswerKnown,
    names?: OwnNames,
  ) {
    this.#ids = ids;
    this.#memory = memory;
    this.#hides = reasoning?.exclude === true;
    this.#tool = tool;
    this.#names = names;
  }

  decoder(told: TurnDecoder): TurnDecoder {
    const tap = this.#memory && new ThinkingTap(this.#memory);
    const inner = tap === undefined ? told : tap.inner(told);
    const named = this.#names === undefined ? inner : namingDecoder(inner, this.#names);
    const shown = this.#hides ? hidingDecoder(named) : named;
    const distinct = distinctDecoder(this.#tool === undefined ? shown : outputDecoder(shown, this.#tool), this.#ids);
    return tap === undefined ? distinct : tap.outer(distinct);
  }

  turn(turn: Turn): Turn {
    const named = this.#names === undefined ? turn : namedTurn(turn, this.#names);
    const shown = this.#hides ? hidingTurn(named) : named;
    const distinct = distinctTurn(this.#tool === undefined ? shown : outputTurn(shown, this.#tool), this.#ids);
    if (this.#memory !== undefined) new ThinkingTap(this.#memory).whole(turn, distinct);
    return distinct;
  }
}
