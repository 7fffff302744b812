/** The content of a recorded response of Cohere, read from its bytes, whole or truncated. It shares no code with `src/formats`. */
import { Reading } from './recorded-answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

const ENDS: Record<string, string> = { MAX_TOKENS: 'length', ERROR_TOXIC: 'refusal' };

/** A tool plan counts as reasoning. */
export class CohereReading extends Reading {
  read(data: string): void {
    let event: Json;
    try {
      event = JSON.parse(data);
    } catch {
      this.fail();
      return;
    }
    const choice = this.choice(0);
    const message = event.delta?.message ?? {};
    if (event.type.startsWith('content-')) {
      choice.text += message.content?.text ?? '';
      choice.reasoning += message.content?.thinking ?? '';
    } else if (event.type === 'tool-plan-delta') choice.reasoning += message.tool_plan;
    else if (event.type === 'tool-call-start') this.call(message.tool_calls);
    else if (event.type === 'tool-call-delta') choice.calls.at(-1)!.arguments += message.tool_calls.function.arguments;
    else if (event.type === 'message-end') this.end(event.delta.finish_reason, event.delta.usage);
  }

  readWhole({ message, finish_reason: finish, usage }: Json): void {
    const choice = this.choice(0);
    choice.reasoning = message.tool_plan ?? '';
    for (const block of message.content ?? []) {
      choice.text += block.text ?? '';
      choice.reasoning += block.thinking ?? '';
    }
    for (const call of message.tool_calls ?? []) this.call(call);
    this.end(finish, usage);
  }

  private call(call: Json): void {
    const { name, arguments: input } = call.function;
    this.choice(0).calls.push({ id: call.id, name, arguments: input, custom: false });
  }

  private end(reason: string, usage: Json): void {
    const { tokens, cached_tokens: cacheRead = 0 } = usage;
    const { input_tokens: input, output_tokens: output, reasoning_tokens: reasoning = 0 } = tokens;
    this.choice(0).finish = ENDS[reason] ?? reason;
    this.usage = { input, cacheRead, cacheWrite: 0, output, reasoning };
    this.counted = this.letters();
    if (/^(ERROR|ERROR_LIMIT|TIMEOUT)$/.test(reason)) this.fail();
    this.finished = true;
    this.over = true;
  }
}

/** The charged units, if the service reports them. */
export function cohereBilled(bytes: Buffer): { input: number; output: number } | null {
  const found = /"billed_units":\{"input_tokens":(\d+),"output_tokens":(\d+)/.exec(bytes.toString('utf8'));
  return found === null ? null : { input: Number(found[1]), output: Number(found[2]) };
}
