import { APICallError, generateText, jsonSchema, type LanguageModel, Output, streamText, tool } from 'ai';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import type { Format } from '../../src/testing/upstream/answers.ts';
import { type Client, type Question, TIME, WEATHER } from './client.ts';

/** What differs between the providers of the `ai` package. */
export interface AiProvider {
  name: string;
  model(format: Format): LanguageModel;
  /** How it is asked to think hard. */
  thinking: Json;
  /** Options of every call. */
  always?: Json;
  thinks?: boolean;
  keepsSignatures: boolean;
}

/** `ai` with one of its providers. */
export function aiSdk({ name, model, thinking, always = {}, thinks = true, keepsSignatures }: AiProvider): Client {
  return {
    name,
    thinks,
    keepsSignatures,
    async ask(question) {
      const settings = settingsOf(question, model(question.format), question.think ? thinking : always);
      const result = question.stream ? await streamed(settings, question) : await generateText(settings);
      const { inputTokens, outputTokens, inputTokenDetails, outputTokenDetails } = await result.usage;
      return {
        text: await result.text,
        reasoning: (await result.reasoningText) ?? '',
        calls: (await result.toolCalls).map((call: Json) => ({
          id: call.toolCallId,
          name: call.toolName,
          input: call.input,
        })),
        finish: await result.finishReason,
        usage: {
          input: inputTokens!,
          output: outputTokens!,
          cacheRead: inputTokenDetails?.cacheReadTokens,
          reasoning: outputTokenDetails?.reasoningTokens,
        } as Json,
        ...(question.schema && { object: await result.output }),
        turns: (await result.response).messages,
      };
    },
    results: ({ calls }, texts) => [
      {
        role: 'tool',
        content: calls.map((call, index) => ({
          type: 'tool-result',
          toolCallId: call.id,
          toolName: call.name,
          output: { type: 'text', value: texts[index] },
        })),
      },
    ],
    statusOf: (error) =>
      APICallError.isInstance(error) ? error.statusCode : (error.statusCode ?? error.code ?? error.error?.code),
    isAbort: (error) => error.name === 'AbortError',
  };
}

function settingsOf(question: Question, model: LanguageModel, providerOptions: Json): Json {
  const { history = [], tools, image, schema, signal } = question;
  const picture = { type: 'image', image: image && Buffer.from(image, 'base64'), mediaType: 'image/png' };
  const content = image ? [{ type: 'text', text: 'hi' }, picture] : 'hi';
  const toolOf = ({ description, parameters }: typeof WEATHER | typeof TIME) =>
    tool({ description, inputSchema: jsonSchema<Json>(parameters) });
  return {
    model,
    messages: [{ role: 'user', content }, ...history],
    maxRetries: 0,
    maxOutputTokens: 4000,
    ...(tools && { tools: { weather: toolOf(WEATHER), time: toolOf(TIME) } }),
    providerOptions,
    ...(schema && { output: Output.object({ schema: jsonSchema(schema) }) }),
    ...(signal && { abortSignal: signal }),
  };
}

async function streamed(settings: Json, { onText, signal }: Question) {
  let failure: unknown;
  const result = streamText({
    ...settings,
    onError: ({ error }: { error: unknown }) => {
      failure ??= error;
    },
  });
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') onText?.(part.text);
    if (part.type === 'error') failure ??= part.error;
    if (part.type === 'abort') failure ??= signal!.reason;
  }
  if (failure !== undefined) throw failure;
  return result as Json;
}
