/**
 * Presents a translated answer to its client: restores the client's names, ids and kinds of calls, and removes hidden
 * reasoning. Pure.
 */
import { type Directory, restoredTurn, restoringDecoder } from '../../formats/client-tools/index.ts';
import { type CallIds, distinctDecoder, distinctTurn } from '../../formats/conversation/call-ids.ts';
import type { Turn } from '../../formats/conversation/conversation.ts';
import type { TurnDecoder } from '../../formats/conversation/format.ts';
import { hidingDecoder, hidingTurn } from '../../formats/conversation/hide-thinking.ts';
import { type ThinkingMemory, ThinkingTap } from '../../formats/conversation/kept-thinking.ts';
import { namedTurn, namingDecoder, type OwnNames } from '../../formats/conversation/short-names.ts';
import { type OutputTool, outputDecoder, outputTurn } from '../../formats/output-tool/index.ts';

export interface Shown {
  /** The client excluded reasoning. */
  hides: boolean;
  /** The tool that replaces `response_format` for this upstream. */
  tool: OutputTool | undefined;
  /** Functions that replace other kinds of the client's tools. */
  directory: Directory | undefined;
  /** Call ids already in use. */
  ids: CallIds;
  /** Stores the reasoning of the answer. */
  memory: ThinkingMemory | undefined;
}

export class Presentation {
  readonly #shown: Shown;
  readonly #names: OwnNames | undefined;

  constructor(shown: Shown, names?: OwnNames) {
    this.#shown = shown;
    this.#names = names;
  }

  decoder(told: TurnDecoder): TurnDecoder {
    const { hides, tool, directory, ids, memory } = this.#shown;
    const tap = memory && new ThinkingTap(memory);
    const inner = tap === undefined ? told : tap.inner(told);
    const named = this.#names === undefined ? inner : namingDecoder(inner, this.#names);
    const restored = directory === undefined ? named : restoringDecoder(named, directory);
    const shown = hides ? hidingDecoder(restored) : restored;
    const distinct = distinctDecoder(tool === undefined ? shown : outputDecoder(shown, tool), ids);
    return tap === undefined ? distinct : tap.outer(distinct);
  }

  turn(turn: Turn): Turn {
    const { hides, tool, directory, ids, memory } = this.#shown;
    const named = this.#names === undefined ? turn : namedTurn(turn, this.#names);
    const restored = directory === undefined ? named : restoredTurn(named, directory);
    const shown = hides ? hidingTurn(restored) : restored;
    const distinct = distinctTurn(tool === undefined ? shown : outputTurn(shown, tool), ids);
    if (memory !== undefined) new ThinkingTap(memory).whole(turn, distinct);
    return distinct;
  }
}
