/**
 * The loop of an answer that takes several turns: after each, the gateway runs the tools that the model asked for, and
 * the next turn continues with their results. Each turn is dispatched, reserved, journalled and charged for itself.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Restoring } from '../../formats/adapters/index.ts';
import type { ToolCallPart } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { TurnDecoder } from '../../formats/conversation/format.ts';
import type { ClientAnswer } from '../answer/client-answer.ts';
import { JoinedAnswer, type PresentEvents } from '../answer/joined-answer.ts';
import { deferredTools } from './deferred-tools.ts';
import type { GatewayToolKind, GatewayTools, ToolRun } from './gateway-tools.ts';
import { FIRST, JoinedTurn, type Joint } from './joined-turn.ts';
import type { LoopTurn } from './translate.ts';

/** Every kind of tools that the gateway runs. An answer has the first one that its request asks for. */
const GATEWAY_TOOLS: readonly GatewayToolKind[] = [deferredTools];

/** @param request a checked request body */
export function gatewayToolsFor(request: Fields): GatewayToolKind | undefined {
  for (const kind of GATEWAY_TOOLS) if (kind.wanted(request)) return kind;
  return undefined;
}

/** The most upstream turns of one answer. */
const MAX_TURNS = 6;

/** The part of an attempt that the loop reads. */
interface LoopAttempt {
  readonly answer: JoinedAnswer;
}

export class TurnLoop {
  readonly #tools: GatewayTools;
  readonly #stream: boolean;
  readonly #callIds = new Set<string>();
  #joint: Joint = FIRST;
  /** The answer that the client has seen so far, once a turn is complete. */
  #answer: JoinedAnswer | undefined;
  #turns = 1;
  /** Output tokens left for all remaining turns; undefined without a cap of the client. */
  leftTokens: number | undefined;

  constructor(tools: GatewayTools, stream: boolean, maxOutputTokens: number | undefined) {
    this.#tools = tools;
    this.#stream = stream;
    this.leftTokens = maxOutputTokens;
  }

  /** What the next turn sends. */
  get turn(): LoopTurn {
    return { conversation: this.#tools.conversation, callIds: this.#callIds };
  }

  get addedBytes(): number {
    return this.#tools.addedBytes;
  }

  /** Distinguishes ids that are made up for one turn from those of the others. */
  seed(id: string): string {
    return `${id}-${this.#turns}`;
  }

  /** The answer of one attempt. @param begin makes that of a first turn @param presentation changes it for the client */
  answerOf(begin: () => ClientAnswer, presentation: () => Restoring | undefined): JoinedAnswer {
    const turn = new JoinedTurn(this.#joint, (name) => this.#tools.claims(name));
    if (this.#answer !== undefined) return this.#answer.continued(turn);
    return new JoinedAnswer(begin(), presenting(presentation()), turn, this.#stream);
  }

  /**
   * Runs what a complete turn asks of the gateway. Resolves with true if another turn follows.
   * @throws GatewayError 502 for a model that does not come to an end, 403 when a filter blocks what a tool shows
   */
  async next({ answer }: LoopAttempt): Promise<boolean> {
    const { turn } = answer;
    const calls = turn.calls!;
    const runs = await Promise.all(calls.map((call) => this.#tools.run(call)));
    this.#answer = answer;
    const steps = runs.flatMap((run) => ('step' in run ? run.step : []));
    answer.show(runs.flatMap(visibleParts));
    const continues = steps.length > 0 && turn.clientCalls === 0 && steps.length === runs.length;
    if (!continues) {
      answer.close();
      return false;
    }
    if (this.#turns >= MAX_TURNS) throw endless();
    if (this.leftTokens !== undefined) {
      // Bytes bound the tokens: a token is at least one byte.
      this.leftTokens -= turn.usage?.output ?? turn.writtenBytes;
      if (this.leftTokens < 1) {
        answer.close('length');
        return false;
      }
    }
    const { parts } = turn.whole.choices[0]!;
    for (const part of parts) if (part.type === 'toolCall') this.#callIds.add(part.id);
    this.#tools.proceed(parts, steps);
    this.#joint = turn.joint;
    this.#turns += 1;
    return true;
  }
}

function visibleParts(run: ToolRun) {
  return 'step' in run ? run.step.visible : [run.call satisfies ToolCallPart];
}

/** A decoder wrapper as a function of events. */
function presenting(restoring: Restoring | undefined): PresentEvents {
  if (restoring === undefined) return (events) => events;
  let waiting: Parameters<PresentEvents>[0] = [];
  const source: TurnDecoder = { read: () => waiting, close: () => [], toldFinish: () => false };
  const decoder = restoring.decoder(source);
  return (events) => {
    waiting = events;
    return decoder.read('', '', undefined);
  };
}

function endless(): GatewayError {
  const message = `the model was still asking for tools after ${MAX_TURNS} turns`;
  return new GatewayError('provider_unavailable', message, { status: 502 });
}
