/** Recorded conversations by the format of their service, and the reader of each format. */
import { type Recording, recordings } from './corpus.ts';
import {
  ChatReading,
  type Ending,
  MessagesReading,
  type Reading,
  type RecordedAnswer,
  readStreamWith,
  readWholeWith,
} from './recorded-answer.ts';
import { CohereReading } from './recorded-cohere.ts';
import { readConverseStream, readConverseWhole } from './recorded-converse.ts';
import { readGeminiStream, readGeminiWhole } from './recorded-gemini.ts';
import { ResponsesReading } from './recorded-responses.ts';

export type RecordedFormat = 'chat' | 'messages' | 'responses' | 'gemini' | 'converse' | 'cohere';

export interface RecordedConversation extends Recording {
  format: RecordedFormat;
}

interface Reader {
  stream(bytes: Buffer, ending: Ending): RecordedAnswer;
  whole(text: string): RecordedAnswer;
}

const READERS: Readonly<Record<RecordedFormat, Reader>> = {
  chat: eventsOf(ChatReading),
  messages: eventsOf(MessagesReading),
  responses: eventsOf(ResponsesReading),
  cohere: eventsOf(CohereReading),
  gemini: { stream: readGeminiStream, whole: readGeminiWhole },
  converse: { stream: readConverseStream, whole: readConverseWhole },
};

function eventsOf(reading: new () => Reading): Reader {
  return {
    stream: (bytes, ending) => readStreamWith(new reading(), bytes, ending),
    whole: (text) => readWholeWith(new reading(), text),
  };
}

/** The recorded conversations in these formats. */
export function recordedConversations(...formats: readonly RecordedFormat[]): RecordedConversation[] {
  return recordings().flatMap((recording): RecordedConversation[] => {
    const format = formatOf(recording);
    return format !== undefined && formats.includes(format) ? [{ ...recording, format }] : [];
  });
}

function formatOf({ api, provider, text }: Recording): RecordedFormat | undefined {
  if (provider === 'cohere') return api === 'chat' && !/"generation_id"/.test(text) ? 'cohere' : undefined;
  if (provider === 'bedrock' && /^converse(-stream)?$/.test(api)) return 'converse';
  // Not the receipts of batches and long-running operations.
  if (/^(google|vertex)$/.test(provider) && api === 'generate')
    return /"batch"|"operation"|^\{\s*"name"/.test(text) ? undefined : 'gemini';
  if (api === 'responses') return 'responses';
  // Not the legacy text completion, which some recordings of the formats have.
  if (/^\s*\{\s*"completion"/.test(text)) return undefined;
  return api === 'chat' || api === 'messages' ? api : undefined;
}

/** The content of a recording, or of other bytes in its format, such as its beginning. */
export function readRecording(
  { format, stream, bytes, text }: RecordedConversation,
  kept: Buffer = bytes,
  ending: Ending = 'close',
): RecordedAnswer {
  return stream ? READERS[format].stream(kept, ending) : READERS[format].whole(text);
}
