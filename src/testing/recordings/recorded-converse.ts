/**
 * The content of a recorded response of Amazon Bedrock's converse API, read from its bytes, whole or truncated. It shares no code
 * with `src/formats` and `src/providers`.
 */
import { crc32 } from 'node:zlib';
import {
  type Ending,
  exactText,
  parsedExactly,
  Reading,
  type RecordedAnswer,
  type RecordedCall,
} from './recorded-answer.ts';

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

/** Positions between the messages, and the end. */
export function awsBorders(bytes: Buffer): number[] {
  const borders: number[] = [];
  for (let at = 0; at + 16 <= bytes.length; at += bytes.readUInt32BE(at)) borders.push(at + bytes.readUInt32BE(at));
  return borders.filter((at) => at <= bytes.length);
}

const ENDS: Record<string, string> = { guardrail_intervened: 'refusal', content_filtered: 'refusal' };

export function readConverseStream(bytes: Buffer, ending: Ending): RecordedAnswer {
  const reader = new ConverseReading();
  for (const { headers, payload } of readAwsMessages(bytes)) {
    if (headers[':message-type'] !== 'event') {
      reader.fail();
      break;
    }
    reader.event(headers[':event-type'] ?? '', JSON.parse(payload));
  }
  // After a broken connection only the counts, which follow the stop, show that the response is complete.
  if (!reader.finished || (ending === 'break' && !reader.over)) reader.fail();
  return reader.answer();
}

export function readConverseWhole(text: string): RecordedAnswer {
  const reader = new ConverseReading();
  reader.readWhole(JSON.parse(text), text);
  return reader.answer();
}

class ConverseReading extends Reading {
  private readonly open = new Map<number, RecordedCall>();

  event(type: string, event: Json): void {
    const choice = this.choice(0);
    if (type === 'contentBlockStart' && event.start?.toolUse) {
      const { toolUseId: id, name } = event.start.toolUse;
      const call = { id, name, arguments: '', custom: false };
      this.open.set(event.contentBlockIndex, call);
      choice.calls.push(call);
    } else if (type === 'contentBlockDelta') {
      const { text = '', reasoningContent, toolUse } = event.delta;
      choice.text += text;
      choice.reasoning += reasoningContent?.text ?? '';
      if (reasoningContent?.signature) this.other = true;
      if (toolUse) this.open.get(event.contentBlockIndex)!.arguments += toolUse.input;
    } else if (type === 'messageStop') this.stop(event.stopReason);
    else if (type === 'metadata') {
      this.over = true;
      this.count(event.usage);
    }
  }

  readWhole(value: Json, text: string): void {
    const choice = this.choice(0);
    const exact = parsedExactly(text);
    (value.output?.message?.content ?? []).forEach((block: Json, at: number) => {
      choice.text += block.text ?? '';
      for (const piece of block.citationsContent?.content ?? []) choice.text += piece.text;
      choice.reasoning += block.reasoningContent?.reasoningText?.text ?? '';
      const { toolUse } = block;
      if (!toolUse) return;
      const input = exactText(exact.output.message.content[at].toolUse.input);
      choice.calls.push({ id: toolUse.toolUseId, name: toolUse.name, arguments: input, custom: false });
    });
    if (value.output === undefined) this.fail();
    this.stop(value.stopReason);
    this.count(value.usage);
  }

  /** Events have their own framing. */
  read(): never {
    throw new Error('not an event stream');
  }

  private stop(reason: string): void {
    this.choice(0).finish = ENDS[reason] ?? reason;
    this.finished = true;
  }

  private count(usage: Json): void {
    const { inputTokens, outputTokens, cacheReadInputTokens: read = 0, cacheWriteInputTokens: written = 0 } = usage;
    const input = inputTokens + read + written;
    this.usage = { input, cacheRead: read, cacheWrite: written, output: outputTokens, reasoning: 0 };
    this.counted = this.letters();
  }
}
