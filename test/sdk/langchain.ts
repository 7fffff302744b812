import { AIMessage, type AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { type Client, type Question, TIME, WEATHER } from './client.ts';

/** LangChain's client of OpenAI. It shows no thinking of chat completions. */
export function langchain(baseURL: string, apiKey: string): Client {
  return {
    name: '@langchain/openai',
    thinks: false,
    keepsSignatures: false,
    async ask(question) {
      const message = await answer(question, baseURL, apiKey);
      const { usage_metadata: usage } = message;
      const text = String(message.content);
      return {
        text,
        reasoning: '',
        calls: (message.tool_calls ?? []).map(({ id, name, args }) => ({ id: id!, name, input: args })),
        finish: String(message.response_metadata['finish_reason']),
        usage: {
          input: usage!.input_tokens,
          output: usage!.output_tokens,
          cacheRead: usage!.input_token_details?.cache_read,
          reasoning: usage!.output_token_details?.reasoning,
        } as Json,
        ...(question.schema && { object: JSON.parse(text) }),
        turns: [new AIMessage({ content: message.content, tool_calls: message.tool_calls ?? [] })],
      };
    },
    results: ({ calls }, texts) =>
      calls.map(({ id }, index) => new ToolMessage({ tool_call_id: id, content: texts[index]! })),
    statusOf: (error) => error.status ?? error.code,
    isAbort: (error) => error.name === 'AbortError' || /abort/i.test(error.message),
  };
}

async function answer(question: Question, baseURL: string, apiKey: string): Promise<AIMessage | AIMessageChunk> {
  const { format, stream, history = [], tools, image, think, schema, signal, onText } = question;
  const model = new ChatOpenAI({
    model: `test/${format}`,
    apiKey,
    maxRetries: 0,
    maxTokens: 4000,
    useResponsesApi: false,
    configuration: { baseURL },
    ...(think && { modelKwargs: { reasoning_effort: 'high' } }),
  });
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } };
  const first = new HumanMessage(image ? { content: [{ type: 'text', text: 'hi' }, picture] } : 'hi');
  const options: Json = {
    ...(signal && { signal }),
    ...(tools && { tools: [WEATHER, TIME].map((one) => ({ type: 'function', function: one })) }),
    ...(schema && { response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } } }),
  };
  const messages = [first, ...history];
  if (!stream) return model.invoke(messages, options);
  let whole: AIMessageChunk | undefined;
  for await (const chunk of await model.stream(messages, options)) {
    if (chunk.content !== '') onText?.(String(chunk.content));
    whole = whole === undefined ? chunk : whole.concat(chunk);
  }
  return whole!;
}
