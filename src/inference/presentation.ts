/** How a translated answer is shown to its client: names and ids of calls as the client knows them, hidden thinking left out. Pure. */
import { type CallIds, distinctDecoder, distinctTurn } from '../formats/conversation/call-ids.ts';
import type { Conversation, Turn } from '../formats/conversation/conversation.ts';
import type { TurnDecoder } from '../formats/conversation/format.ts';
import { hidingDecoder, hidingTurn } from '../formats/conversation/hide-thinking.ts';
import { namedTurn, namingDecoder, type OwnNames } from '../formats/conversation/short-names.ts';
import { type OutputTool, outputDecoder, outputTurn } from '../formats/output-tool/index.ts';

/** What the client of a translated answer does not see as it came: thinking that it excluded, a tool that stands for its format. */
export class Presentation {
  readonly #hides: boolean;
  readonly #tool: OutputTool | undefined;
  readonly #ids: CallIds;
  readonly #names: OwnNames | undefined;

  constructor({ reasoning }: Conversation, tool: OutputTool | undefined, ids: CallIds, names?: OwnNames) {
    this.#ids = ids;
    this.#hides = reasoning?.exclude === true;
    this.#tool = tool;
    this.#names = names;
  }

  decoder(inner: TurnDecoder): TurnDecoder {
    const named = this.#names === undefined ? inner : namingDecoder(inner, this.#names);
    const shown = this.#hides ? hidingDecoder(named) : named;
    return distinctDecoder(this.#tool === undefined ? shown : outputDecoder(shown, this.#tool), this.#ids);
  }

  turn(turn: Turn): Turn {
    const named = this.#names === undefined ? turn : namedTurn(turn, this.#names);
    const shown = this.#hides ? hidingTurn(named) : named;
    return distinctTurn(this.#tool === undefined ? shown : outputTurn(shown, this.#tool), this.#ids);
  }
}
