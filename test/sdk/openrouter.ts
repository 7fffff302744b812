import { OpenRouter } from '@openrouter/sdk';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { type Client, type Question, type Seen, TIME, WEATHER } from './client.ts';

/** `@openrouter/sdk`: it checks every answer against its schema, and calls everything in camel case. */
export function openrouterSdk(serverURL: string, apiKey: string): Client {
  const client = new OpenRouter({ serverURL, apiKey, retryConfig: { strategy: 'none' } });
  return {
    name: '@openrouter/sdk',
    thinks: true,
    keepsSignatures: true,
    mayForget: true,
    async ask(question) {
      const chatRequest = requestOf(question);
      const options = question.signal ? { signal: question.signal } : {};
      if (question.stream) {
        const stream = await client.chat.send({ chatRequest: { ...chatRequest, stream: true } }, options);
        return gather(stream as unknown as AsyncIterable<Json>, question);
      }
      const result: Json = await client.chat.send({ chatRequest: { ...chatRequest, stream: false } }, options);
      const [choice] = result.choices;
      return seenOf(choice.message, choice.finishReason, result.usage);
    },
    results: ({ calls }, texts) =>
      calls.map(({ id }, index) => ({ role: 'tool', toolCallId: id, content: texts[index] })),
    statusOf: (error) => error.statusCode,
    isAbort: (error) => error.name === 'RequestAbortedError' || error.name === 'AbortError',
  };
}

function requestOf({ format, history = [], tools, image, think, schema }: Question): Json {
  const picture = { type: 'image_url', imageUrl: { url: `data:image/png;base64,${image}` } };
  const content = image ? [{ type: 'text', text: 'hi' }, picture] : 'hi';
  return {
    model: `test/${format}`,
    messages: [{ role: 'user', content }, ...history],
    maxTokens: 4000,
    ...(tools && { tools: [WEATHER, TIME].map((tool) => ({ type: 'function', function: tool })) }),
    ...(think && { reasoning: { effort: 'high' } }),
    ...(schema && { responseFormat: { type: 'json_schema', jsonSchema: { name: 'answer', strict: true, schema } } }),
  };
}

function seenOf(message: Json, finish: string, usage: Json): Seen {
  const text = message.content ?? '';
  return {
    text,
    reasoning: message.reasoning ?? '',
    calls: (message.toolCalls ?? []).map((call: Json) => ({
      id: call.id,
      name: call.function.name,
      input: JSON.parse(call.function.arguments),
    })),
    finish,
    usage: {
      input: usage.promptTokens,
      output: usage.completionTokens,
      cacheRead: usage.promptTokensDetails.cachedTokens,
      reasoning: usage.completionTokensDetails.reasoningTokens,
    },
    ...(text.startsWith('{') && { object: JSON.parse(text) }),
    turns: [message],
  };
}

async function gather(stream: AsyncIterable<Json>, { onText }: Question): Promise<Seen> {
  const message: Json = { role: 'assistant', content: '', reasoning: '', toolCalls: [], reasoningDetails: [] };
  let finish = '';
  let usage: Json;
  for await (const chunk of stream) {
    if (chunk.error) throw Object.assign(new Error(chunk.error.message), { statusCode: chunk.error.code });
    usage ??= chunk.usage;
    for (const { delta, finishReason } of chunk.choices) {
      finish = finishReason ?? finish;
      if (delta.content) onText?.(delta.content);
      message.content += delta.content ?? '';
      message.reasoning += delta.reasoning ?? '';
      message.reasoningDetails.push(...(delta.reasoningDetails ?? []));
      for (const { index, ...piece } of delta.toolCalls ?? []) {
        if (piece.id) message.toolCalls[index] = { ...piece, function: { ...piece.function } };
        else message.toolCalls[index].function.arguments += piece.function.arguments;
      }
    }
  }
  return seenOf(message, finish, usage);
}
