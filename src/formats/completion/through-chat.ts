/**
 * Completions on top of chat: the prompt becomes one user message, and answers, events and errors of the chat format
 * are converted back.
 */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { DEFAULT_MAX_TOKENS } from './schema.ts';

/** How chat answers become completions. */
export interface CompletionShape {
  /** Prefix of every answer when the client requests the prompt back, otherwise ''. */
  echo: string;
}

/**
 * The request in the chat format.
 * @throws GatewayError 400 for what a conversation cannot express: several prompts, token ids, a suffix
 */
export function chatRequestOf(body: Fields): { body: Fields; shape: CompletionShape } {
  const prompt = promptOf(body['prompt']);
  const { prompt: _p, suffix, echo, best_of, logprobs, ...others } = body;
  if (textOf(suffix) !== '') throw invalidField('suffix', 'is not supported by any provider of this model');
  if (typeof best_of === 'number' && best_of > 1) {
    throw invalidField('best_of', 'must be 1: no provider of this model supports more');
  }
  const capped = typeof others['max_tokens'] === 'number' || typeof others['max_completion_tokens'] === 'number';
  return {
    body: {
      ...others,
      messages: [{ role: 'user', content: prompt }],
      ...(!capped && { max_tokens: DEFAULT_MAX_TOKENS }),
      ...(typeof logprobs === 'number' && { logprobs: true, top_logprobs: logprobs }),
    },
    shape: { echo: echo === true ? prompt : '' },
  };
}

function promptOf(prompt: unknown): string {
  if (typeof prompt === 'string') return prompt;
  const items = listOf(prompt);
  if (items.length === 1 && typeof items[0] === 'string') return items[0];
  if (items.length === 0) throw invalidField('prompt', 'must not be empty');
  if (typeof items[0] === 'string')
    throw invalidField('prompt', 'must be a single string for this model: send one request per prompt');
  throw invalidField('prompt', 'must be a string: no provider of this model accepts token ids');
}

/** Converts a complete chat answer; errors keep their envelope, which both formats share. */
export function completionOf(reply: Fields, { echo }: CompletionShape): Fields {
  if (!('choices' in reply)) return reply;
  return {
    ...reply,
    object: 'text_completion',
    choices: listOf(reply['choices']).map((value) => {
      const choice = fieldsOf(value);
      const message = fieldsOf(choice['message']);
      return choiceOf(choice, echo + (textOf(message['content']) || textOf(message['refusal'])), echo.length);
    }),
  };
}

/** Converts the events of one chat stream. */
export class CompletionStream {
  readonly #echo: string;
  readonly #begun = new Set<unknown>();
  /** Characters written so far, by choice: the offset of the next token. */
  readonly #offsets = new Map<unknown, number>();

  constructor({ echo }: CompletionShape) {
    this.#echo = echo;
  }

  /** @param text complete events of the chat format, possibly with comments */
  rewrite(text: string): string {
    return text
      .split('\n\n')
      .map((event) => this.#event(event))
      .filter((event) => event !== undefined)
      .join('\n\n');
  }

  #event(event: string): string | undefined {
    if (!event.startsWith('data: {')) return event;
    const chunk = JSON.parse(event.slice('data: '.length)) as Fields;
    const choices = listOf(chunk['choices']).map((value) => this.#choice(fieldsOf(value)));
    // Roles, thinking and calls have no counterpart here; a chunk with nothing else is dropped.
    const empty =
      choices.length > 0 && choices.every(({ text, finish_reason }) => text === '' && finish_reason === null);
    if (empty && !('usage' in chunk && chunk['usage'] !== null) && !('error' in chunk)) return undefined;
    return `data: ${JSON.stringify({ ...chunk, object: 'text_completion', choices })}`;
  }

  #choice(choice: Fields): Fields {
    const { index } = choice;
    const delta = fieldsOf(choice['delta']);
    const written = textOf(delta['content']) + textOf(delta['refusal']);
    const first = written !== '' && !this.#begun.has(index);
    if (first) this.#begun.add(index);
    const offset = this.#offsets.get(index) ?? this.#echo.length;
    this.#offsets.set(index, offset + written.length);
    return choiceOf(choice, (first ? this.#echo : '') + written, offset);
  }
}

/** @param offset the position of `text` in the whole text, including the echo */
function choiceOf(choice: Fields, text: string, offset: number): Fields {
  const finish = choice['finish_reason'] ?? null;
  return {
    text,
    index: choice['index'],
    logprobs: logprobsOf(choice['logprobs'], offset),
    finish_reason: finish === 'tool_calls' ? 'stop' : finish,
    ...('native_finish_reason' in choice && { native_finish_reason: choice['native_finish_reason'] }),
  };
}

function logprobsOf(logprobs: unknown, offset: number): Fields | null {
  const content = listOf(fieldsOf(logprobs)['content']).filter(isFields);
  if (content.length === 0) return null;
  let at = offset;
  const offsets = content.map(({ token }) => {
    const start = at;
    at += textOf(token).length;
    return start;
  });
  return {
    tokens: content.map(({ token }) => token),
    token_logprobs: content.map(({ logprob }) => logprob),
    top_logprobs: content.map(({ top_logprobs }) =>
      Object.fromEntries(
        listOf(top_logprobs)
          .filter(isFields)
          .map(({ token, logprob }) => [textOf(token), logprob]),
      ),
    ),
    text_offset: offsets,
  };
}
