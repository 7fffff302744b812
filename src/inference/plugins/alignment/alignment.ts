/**
 * Judges the turns of one answer by the rules of the plugin `alignment`, and decides whether a turn is shown, retried
 * or refused.
 */
import { GatewayError } from '../../../base/errors.ts';
import type { Message, Part } from '../../../formats/conversation/conversation.ts';
import type { Fields } from '../../../formats/conversation/fields.ts';
import type { JudgeRunning, JudgeStep, TurnJudge } from '../plugin.ts';
import { lastQuestion } from '../web/last-question.ts';
import { evaluation, type RuleVerdict, verdictsIn, writtenIn } from './evaluator.ts';

const DEFAULT_THRESHOLD = 0.7;

type Unavailable = 'cut' | 'evaluator_error' | 'malformed_answer' | 'time_limit';

/** The verdict on one turn, as the chat format shows it. */
type Judged =
  | { outcome: 'allowed' | 'blocked'; rules: ({ broken: boolean } & RuleVerdict)[] }
  | { outcome: 'unavailable'; reason: Unavailable };

export class Alignment implements TurnJudge {
  readonly withholds: boolean;
  readonly #step: JudgeStep;
  readonly #rules: readonly string[];
  readonly #threshold: number;
  /** Remaining retries. */
  #retries: number;

  constructor(step: JudgeStep) {
    const { settings } = step;
    this.#step = step;
    this.withholds = settings['mode'] !== 'audit';
    this.#rules = settings['rules'] as readonly string[];
    this.#threshold = Number(settings['threshold'] ?? DEFAULT_THRESHOLD);
    this.#retries = Number(settings['max_retries'] ?? 1);
  }

  async judge(parts: readonly Part[], running: JudgeRunning): Promise<Message[] | undefined> {
    const written = writtenIn(parts);
    if (written === undefined) return undefined;
    const judged = written === 'cut' ? unavailable('cut') : await this.#judge(written, running);
    const { context } = this.#step;
    const { calls = [] } = context.alignment ?? {};
    context.alignment = { calls: [...calls, { call: calls.length + 1, ...judged }] };
    context.addStage({ type: 'plugin', name: 'alignment', summary: SUMMARIES[judged.outcome], data: judged });
    if (!this.withholds || judged.outcome === 'allowed') return undefined;
    if (judged.outcome === 'unavailable') throw unchecked(judged.reason);
    const broken = this.#rules.filter((_, index) => judged.rules[index]!.broken);
    if (this.#retries === 0) throw refusal(broken);
    this.#retries -= 1;
    return this.#step.settings['instruct'] === false ? [] : [reminder(broken)];
  }

  async #judge(written: Fields, running: JudgeRunning): Promise<Judged> {
    const { clock, limits } = this.#step.parts;
    const time = new AbortController();
    const timer = clock.timer(limits.serverToolCallMs, () => time.abort());
    try {
      const reply = await running.ask(this.#evaluation(written), AbortSignal.any([running.signal, time.signal]));
      return this.#judgedBy(verdictsIn(reply, this.#rules.length));
    } catch (thrown) {
      if (this.withholds) this.#refuseTo(thrown, running);
      return unavailable(time.signal.aborted ? 'time_limit' : 'evaluator_error');
    } finally {
      timer.cancel();
    }
  }

  #evaluation(written: Fields): Fields {
    const { context, parts } = this.#step;
    const { format, document, facts } = context.request;
    const model = parts.alignmentModel?.() ?? facts.model ?? facts.fallbackModels[0];
    return evaluation(model, this.#rules, lastQuestion(format, document.value), written);
  }

  #judgedBy(verdicts: readonly RuleVerdict[] | undefined): Judged {
    if (verdicts === undefined) return unavailable('malformed_answer');
    const rules = verdicts.map(({ applicable, probability }) => ({
      applicable,
      broken: applicable && probability >= this.#threshold,
      probability,
    }));
    return { outcome: rules.some(({ broken }) => broken) ? 'blocked' : 'allowed', rules };
  }

  /** Limits of the key and a disconnected client end the answer with their own error. */
  #refuseTo(thrown: unknown, { signal }: JudgeRunning): void {
    signal.throwIfAborted();
    if (thrown instanceof GatewayError && (thrown.status === 402 || thrown.status === 429)) throw thrown;
  }
}

const SUMMARIES: Readonly<Record<Judged['outcome'], string>> = {
  allowed: 'the turn keeps to the rules',
  blocked: 'the turn breaks rules',
  unavailable: 'the turn could not be judged',
};

function unavailable(reason: Unavailable): Judged {
  return { outcome: 'unavailable', reason };
}

function reminder(broken: readonly string[]): Message {
  const rules = broken.map((rule) => `- ${rule}`).join('\n');
  const text =
    `(Your answer was withheld because it breaks these rules:\n${rules}\n` +
    'Answer again without breaking them, and do not mention this note.)';
  return { role: 'user', parts: [{ type: 'text', text }] };
}

function refusal(broken: readonly string[]): GatewayError {
  return new GatewayError('content_policy_violation', 'the answer breaks rules of the plugin alignment', {
    status: 403,
    metadata: { reasons: broken },
  });
}

function unchecked(reason: Unavailable): GatewayError {
  return new GatewayError('server', `the answer could not be judged by the rules of the plugin alignment (${reason})`, {
    status: 503,
    metadata: { retryable: true },
  });
}
