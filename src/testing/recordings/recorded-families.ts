/**
 * What recorded answers of Amazon Bedrock (converse form) and Cohere say, read from their bytes, whole or cut off: the
 * expectation that a gateway's answer is held against. It shares no code with `src/formats` and `src/providers`.
 */
import { crc32 } from 'node:zlib';
import { readServerSentEvents } from './corpus.ts';
import { exactText, parsedExactly, type RecordedAnswer, type RecordedChoice } from './recorded-answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

export interface AwsMessage {
  headers: Record<string, string>;
  payload: string;
}

/** The whole messages at the beginning of the bytes; a broken checksum throws. */
export function readAwsMessages(bytes: Buffer): AwsMessage[] {
  const messages: AwsMessage[] = [];
  let at = 0;
  while (at + 16 <= bytes.length) {
    const total = bytes.readUInt32BE(at);
    if (at + total > bytes.length) break;
    const message = bytes.subarray(at, at + total);
    if (crc32(message.subarray(0, 8)) !== message.readUInt32BE(8)) throw new Error('checksum of the prelude');
    if (crc32(message.subarray(0, -4)) !== message.readUInt32BE(total - 4)) throw new Error('checksum of the message');
    const headersEnd = 12 + message.readUInt32BE(4);
    const headers: Record<string, string> = {};
    for (let p = 12; p < headersEnd; ) {
      const nameEnd = p + 1 + message[p]!;
      const length = message.readUInt16BE(nameEnd + 1);
      const valueEnd = nameEnd + 3 + length;
      headers[message.toString('utf8', p + 1, nameEnd)] = message.toString('utf8', nameEnd + 3, valueEnd);
      p = valueEnd;
    }
    messages.push({ headers, payload: message.toString('utf8', headersEnd, total - 4) });
    at += total;
  }
  return messages;
}

/** Positions between the messages, the end included. */
export function awsBorders(bytes: Buffer): number[] {
  const borders: number[] = [];
  for (let at = 0; at + 16 <= bytes.length; at += bytes.readUInt32BE(at)) borders.push(at + bytes.readUInt32BE(at));
  return borders.filter((at) => at <= bytes.length);
}

function blank(): RecordedAnswer & { choices: [RecordedChoice] } {
  const choice = { text: '', reasoning: '', refusal: '', calls: [], finish: null };
  return { complete: false, choices: [choice], usage: null, uncounted: 0, other: false };
}

const CONVERSE_ENDS: Record<string, string> = { guardrail_intervened: 'refusal', content_filtered: 'refusal' };

/** @param ending how the connection ended; broken off, nothing but the counts behind the stop makes an answer complete */
export function readConverseStream(bytes: Buffer, ending: 'close' | 'break' = 'close'): RecordedAnswer {
  const answer = blank();
  const [choice] = answer.choices;
  const calls = new Map<number, RecordedChoice['calls'][number] | null>();
  let failed = false;
  for (const { headers, payload } of readAwsMessages(bytes)) {
    const event: Json = JSON.parse(payload);
    if (headers[':message-type'] !== 'event') {
      failed = true;
      break;
    }
    const index = event.contentBlockIndex;
    switch (headers[':event-type']) {
      case 'contentBlockStart':
        if (!event.start?.toolUse) break;
        calls.set(index, {
          id: event.start.toolUse.toolUseId,
          name: event.start.toolUse.name,
          arguments: '',
          custom: false,
        });
        choice.calls.push(calls.get(index)!);
        break;
      case 'contentBlockDelta':
        choice.text += event.delta.text ?? '';
        choice.reasoning += event.delta.reasoningContent?.text ?? '';
        if (event.delta.reasoningContent?.signature) answer.other = true;
        if (event.delta.toolUse) calls.get(index)!.arguments += event.delta.toolUse.input;
        break;
      case 'messageStop':
        choice.finish = CONVERSE_ENDS[event.stopReason] ?? event.stopReason;
        break;
      case 'metadata':
        answer.usage = converseCounts(event.usage);
    }
  }
  const counted = answer.usage !== null;
  answer.complete = !failed && choice.finish !== null && (ending === 'close' || counted);
  if (answer.usage === null) answer.uncounted = lettersOf(choice);
  return answer;
}

export function readConverseWhole(text: string): RecordedAnswer {
  const answer = blank();
  const [choice] = answer.choices;
  const value: Json = JSON.parse(text);
  const exact: Json = parsedExactly(text);
  (value.output?.message?.content ?? []).forEach((block: Json, at: number) => {
    choice.text += block.text ?? '';
    for (const piece of block.citationsContent?.content ?? []) choice.text += piece.text;
    choice.reasoning += block.reasoningContent?.reasoningText?.text ?? '';
    const { toolUse } = block;
    if (!toolUse) return;
    const written = exactText(exact.output.message.content[at].toolUse.input);
    choice.calls.push({ id: toolUse.toolUseId, name: toolUse.name, arguments: written, custom: false });
  });
  choice.finish = CONVERSE_ENDS[value.stopReason] ?? value.stopReason;
  answer.usage = converseCounts(value.usage);
  answer.complete = value.output !== undefined;
  return answer;
}

function converseCounts(usage: Json): RecordedAnswer['usage'] {
  const { inputTokens, outputTokens, cacheReadInputTokens: read = 0, cacheWriteInputTokens: written = 0 } = usage;
  return {
    input: inputTokens + read + written,
    cacheRead: read,
    cacheWrite: written,
    output: outputTokens,
    reasoning: 0,
  };
}

const COHERE_ENDS: Record<string, string> = { MAX_TOKENS: 'length', ERROR_TOXIC: 'refusal' };

/** A plan stands with the reasoning; `ending` is of no matter, since nothing behind `message-end` counts. */
export function readCohereStream(bytes: Buffer, ending: 'close' | 'break' = 'close'): RecordedAnswer {
  const text = bytes.toString('utf8');
  // The last event counts without its blank line when the connection ended in order.
  const whole = ending === 'close' ? text : text.slice(0, text.lastIndexOf('\n\n') + 2);
  const answer = blank();
  const [choice] = answer.choices;
  for (const { data } of readServerSentEvents(whole)) {
    if (data === '[DONE]') break;
    let event: Json;
    try {
      event = JSON.parse(data);
    } catch {
      break;
    }
    const message = event.delta?.message ?? {};
    if (event.type.startsWith('content-')) {
      choice.text += message.content?.text ?? '';
      choice.reasoning += message.content?.thinking ?? '';
    } else if (event.type === 'tool-plan-delta') choice.reasoning += message.tool_plan;
    else if (event.type === 'tool-call-start') {
      const call = message.tool_calls;
      choice.calls.push({ id: call.id, name: call.function.name, arguments: call.function.arguments, custom: false });
    } else if (event.type === 'tool-call-delta') {
      choice.calls.at(-1)!.arguments += message.tool_calls.function.arguments;
    } else if (event.type === 'message-end') {
      answer.complete = !/^(ERROR|ERROR_LIMIT|TIMEOUT)$/.test(event.delta.finish_reason);
      choice.finish = COHERE_ENDS[event.delta.finish_reason] ?? event.delta.finish_reason;
      answer.usage = cohereCounts(event.delta.usage);
    }
  }
  if (answer.usage === null) answer.uncounted = lettersOf(choice);
  return answer;
}

export function readCohereWhole(text: string): RecordedAnswer {
  const answer = blank();
  const [choice] = answer.choices;
  const { message, finish_reason: finish, usage }: Json = JSON.parse(text);
  choice.reasoning = message.tool_plan ?? '';
  for (const block of message.content ?? []) {
    choice.text += block.text ?? '';
    choice.reasoning += block.thinking ?? '';
  }
  for (const call of message.tool_calls ?? []) {
    choice.calls.push({ id: call.id, name: call.function.name, arguments: call.function.arguments, custom: false });
  }
  choice.finish = COHERE_ENDS[finish] ?? finish;
  answer.usage = cohereCounts(usage);
  answer.complete = true;
  return answer;
}

function cohereCounts(usage: Json): RecordedAnswer['usage'] {
  const { tokens, cached_tokens: cacheRead = 0 } = usage;
  const { input_tokens: input, output_tokens: output, reasoning_tokens: reasoning = 0 } = tokens;
  return { input, cacheRead, cacheWrite: 0, output, reasoning };
}

/** What the service charges for, where it says so. */
export function cohereBilled(bytes: Buffer): { input: number; output: number } | null {
  const found = /"billed_units":\{"input_tokens":(\d+),"output_tokens":(\d+)/.exec(bytes.toString('utf8'));
  return found === null ? null : { input: Number(found[1]), output: Number(found[2]) };
}

function lettersOf({ text, reasoning, calls }: RecordedChoice): number {
  return (text + reasoning + calls.map((call) => call.name + call.arguments).join('')).length;
}
