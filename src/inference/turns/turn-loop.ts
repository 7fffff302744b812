/**
 * The loop of an answer that takes several turns: after each, the gateway runs the tools that the model asked for, and
 * the next turn continues with their results. Each turn is dispatched, reserved, journaled and charged separately.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Nano } from '../../base/money.ts';
import type { Restoring } from '../../formats/adapters/index.ts';
import type { Conversation, Finish, Message, ToolCallPart } from '../../formats/conversation/conversation.ts';
import type { RequestFacts, TurnDecoder } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import { resultPart } from '../../formats/conversation/tool-steps.ts';
import type { ClientAnswer } from '../answer/client-answer.ts';
import { JoinedAnswer, type PresentEvents, type ShownCall } from '../answer/joined-answer.ts';
import type { InferenceParts } from '../parts.ts';
import type { TurnJudge } from '../plugins/plugin.ts';
import { serverTools } from '../tools/index.ts';
import { deferredTools } from './deferred-tools.ts';
import type {
  GatewayToolKind,
  GatewayTools,
  ToolRequest,
  ToolRun,
  ToolStepRun,
  ToolsRunning,
  WantedTools,
} from './gateway-tools.ts';
import { FIRST, JoinedTurn, type Joint } from './joined-turn.ts';
import { together } from './together.ts';
import type { LoopTurn } from './translate.ts';

/** Every kind of tools that the gateway runs. Each gets the conversation as the one before it has made it. */
const GATEWAY_TOOLS: readonly GatewayToolKind[] = [deferredTools, serverTools];

/** The tools that the gateway runs for the request; undefined for most requests. */
export function gatewayToolsFor(request: ToolRequest, parts: InferenceParts): WantedTools | undefined {
  let all: WantedTools | undefined;
  for (const kind of GATEWAY_TOOLS) {
    const wanted = kind.wanted(request, parts);
    if (wanted !== undefined) all = all === undefined ? wanted : together(all, wanted);
  }
  return all;
}

/** For a request without such tools whose turns are judged. */
export const NO_TOOLS: WantedTools = {
  definitionBytes: 0,
  lasting: false,
  begin: (conversation) => ({
    conversation,
    claims: () => false,
    run: ({ name }) => {
      throw new Error(`the request has no tool ${name} of the gateway`);
    },
  }),
};

/** The maximum number of upstream turns of an answer whose tools have no limit of their own. */
const MAX_TURNS = 6;

/** The part of an attempt that the loop reads. */
interface LoopAttempt {
  readonly answer: JoinedAnswer;
  readonly finish: Finish | undefined;
}

export interface LoopRunning extends Omit<ToolsRunning, 'conversation'> {
  /** The answer has output that the client may see before the tools have ended. */
  advanced(): void;
  /** Tokens and cost of all turns and tools so far. */
  spent(): { tokens: number; costNano: Nano };
}

interface LoopSetup {
  tools: GatewayTools;
  judge: TurnJudge | undefined;
  request: Pick<RequestFacts, 'stream' | 'maxOutputTokens'>;
  /** That the tools' definitions add to the request, at most. */
  definitionBytes: number;
}

export class TurnLoop {
  readonly #tools: GatewayTools;
  readonly #judge: TurnJudge | undefined;
  readonly #stream: boolean;
  readonly #callIds = new Set<string>();
  #conversation: Conversation;
  #joint: Joint;
  /** The answer that the client has seen so far, once a turn is complete. */
  #answer: JoinedAnswer | undefined;
  #turns = 1;
  /** The current turn is the last: its calls for the gateway are not run. */
  #last = false;
  addedBytes: number;
  /** Output tokens left for all remaining turns; undefined without a cap of the client. */
  leftTokens: number | undefined;

  /** What the model reads before it writes a turn again. */
  #reminder: readonly Message[] = [];

  /** @throws Uncarried for several choices, which cannot be judged */
  constructor({ tools, judge, request, definitionBytes }: LoopSetup) {
    if (judge !== undefined && (tools.conversation.choices ?? 1) > 1) {
      throw new Uncarried('n', 'the plugin alignment supports a single choice only');
    }
    this.#tools = tools;
    this.#judge = judge;
    this.#joint = { ...FIRST, prelude: tools.prelude };
    this.#conversation = tools.conversation;
    this.#stream = request.stream;
    this.addedBytes = definitionBytes;
    this.leftTokens = request.maxOutputTokens;
  }

  /** What the next turn sends. */
  get turn(): LoopTurn {
    const { messages } = this.#conversation;
    const conversation =
      this.#reminder.length === 0
        ? this.#conversation
        : { ...this.#conversation, messages: [...messages, ...this.#reminder] };
    return { conversation, callIds: this.#callIds };
  }

  /** Distinguishes ids that are made up for one turn from those of the others. */
  seed(id: string): string {
    return `${id}-${this.#turns}`;
  }

  /** The answer of one attempt. @param begin makes that of a first turn @param presentation changes it for the client */
  answerOf(begin: () => ClientAnswer, presentation: () => Restoring | undefined): JoinedAnswer {
    const turn = new JoinedTurn(this.#joint, this.#tools, this.#judge);
    if (this.#answer !== undefined) return this.#answer.continued(turn);
    return new JoinedAnswer(begin(), presenting(presentation()), turn, this.#stream);
  }

  /**
   * Lets a complete turn be judged, and runs the tools that it calls. Resolves with true if another turn follows.
   * @throws GatewayError 502 for a model that does not come to an end, 403 when a filter blocks what a tool shows, and
   * what the judge throws
   */
  async next(attempt: LoopAttempt, running: LoopRunning): Promise<boolean> {
    if (this.#judge === undefined) return this.#next(attempt, running);
    const { answer } = attempt;
    const judging = this.#judge.judge(answer.turn.whole.choices[0]?.parts ?? [], running);
    if (this.#judge.withholds) {
      const reminder = await judging;
      if (reminder !== undefined) {
        this.#writeAgain(answer, reminder);
        return true;
      }
    }
    answer.release();
    const continues = await this.#next(attempt, running);
    await judging;
    return continues;
  }

  /** The client has seen nothing of the turn. */
  #writeAgain({ turn }: JoinedAnswer, reminder: readonly Message[]): void {
    this.#joint = { ...this.#joint, usage: turn.joint.usage };
    this.#remind(reminder);
  }

  #remind(reminder: readonly Message[]): void {
    this.addedBytes += sizeOf(reminder) - sizeOf(this.#reminder);
    this.#reminder = reminder;
  }

  async #next(attempt: LoopAttempt, running: LoopRunning): Promise<boolean> {
    const { answer } = attempt;
    const { turn } = answer;
    const calls = turn.calls!;
    this.#answer = answer;
    if (this.#last && (calls.length > 0 || turn.paused)) {
      answer.close('stop');
      return false;
    }
    const runs = await this.#run(calls, answer, running);
    const steps = runs.flatMap((run) => ('step' in run ? run.step : []));
    const allRun = steps.length > 0 && turn.clientCalls === 0 && steps.length === runs.length;
    const continues = allRun || turn.paused;
    if (!continues) {
      answer.close();
      return false;
    }
    const { ending } = this.#tools;
    if (ending === undefined && this.#turns >= MAX_TURNS) throw endless();
    if (this.leftTokens !== undefined) {
      // Bytes bound the tokens: a token is at least one byte.
      this.leftTokens -= turn.usage?.output ?? turn.writtenBytes;
      if (this.leftTokens < 1) {
        answer.close('length');
        return false;
      }
    }
    this.#last = ending?.reached({ ...finished(attempt, calls), steps: this.#turns, ...running.spent() }) ?? false;
    this.#proceed(answer, steps);
    return true;
  }

  async #run(calls: readonly ToolCallPart[], answer: JoinedAnswer, running: LoopRunning): Promise<ToolRun[]> {
    const place = { turn: this.#turns, mixed: answer.turn.clientCalls > 0 };
    const started = answer.announce(calls.map((call) => this.#tools.start?.(call, place)));
    running.advanced();
    const tools: ToolsRunning = { ...running, conversation: () => this.#withTurn(answer) };
    let areOver = false;
    const reporting = (index: number | undefined): Pick<ToolsRunning, 'report'> => {
      if (index === undefined) return {};
      return {
        report: (step) => {
          // A call that has taken too long may still run.
          if (areOver || running.signal.aborted) return;
          answer.report(index, step);
          running.advanced();
        },
      };
    };
    const runs = await Promise.all(
      calls.map((call, at) => this.#tools.run(call, place, { ...tools, ...reporting(started[at]) })),
    );
    areOver = true;
    answer.show(runs.map((run, index) => shown(run, started[index])));
    return runs;
  }

  #withTurn({ turn }: JoinedAnswer): Conversation {
    const { messages } = this.#conversation;
    return {
      ...this.#conversation,
      messages: [...messages, { role: 'assistant', parts: turn.whole.choices[0]!.parts }],
    };
  }

  /** Adds the turn of the model, and the results of its calls. */
  #proceed({ turn }: JoinedAnswer, steps: readonly ToolStepRun[]): void {
    const { parts } = turn.whole.choices[0]!;
    for (const part of parts) if (part.type === 'toolCall') this.#callIds.add(part.id);
    const results = steps.map(({ id, result, failed = false }) => resultPart({ id, result, failed }));
    this.addedBytes += Buffer.byteLength(JSON.stringify([parts, results]));
    const { messages } = this.#conversation;
    this.#conversation = {
      ...this.#conversation,
      messages: [
        ...messages,
        { role: 'assistant', parts },
        ...(results.length === 0 ? [] : [{ role: 'tool' as const, parts: results }]),
      ],
      ...this.#toolChoice(),
    };
    this.#joint = turn.joint;
    this.#turns += 1;
    this.#remind([]);
  }

  #toolChoice(): Pick<Conversation, 'toolChoice'> {
    if (this.#last) return { toolChoice: { mode: 'none' } };
    const mode = this.#conversation.toolChoice?.mode ?? 'auto';
    const forces = mode === 'required' || mode === 'tool';
    return forces && this.#tools.ending?.forcesOnce === true ? { toolChoice: { mode: 'auto' } } : {};
  }
}

function sizeOf(messages: readonly Message[]): number {
  return messages.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(messages));
}

function shown(run: ToolRun, started: number | undefined): ShownCall {
  if ('call' in run) return { parts: [run.call], started };
  if ('asks' in run) return { parts: [run.asks], started };
  if ('waits' in run) return { value: run.waits.shown.value, parts: run.waits.calls, started };
  const { visible, replaces = false, added = [] } = run.step;
  return replaces ? { value: visible[0]?.value, parts: added, started } : { parts: [...visible, ...added], started };
}

function finished({ finish }: LoopAttempt, calls: readonly ToolCallPart[]) {
  return {
    called: calls.map(({ name }) => name),
    finish: finish === undefined ? [] : [finish.native, finish.unified],
  };
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
