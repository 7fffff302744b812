/** Request bodies in the gemini format: tools, settings, schemas. Expectations follow the vendor documentation. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseJson, stringifyJson } from '../../base/json.ts';
import { chat } from '../chat/index.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { gemini } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

function target(model = 'gemini-2.5-flash', more: Partial<EncodeTarget> = {}): EncodeTarget {
  return { model, stream: false, maxOutputTokens: null, origin: 'google-gemini-v1', user: 'u', dialect: {}, ...more };
}

function encode(conversation: Conversation, to = target(), losses = new Losses()): Json {
  return JSON.parse(stringifyJson(gemini.encode(conversation, to, losses)));
}

function fromChat(body: Record<string, unknown>, to = target(), losses = new Losses()): Json {
  return encode(chat.decode(parseJson(JSON.stringify({ messages: HELLO, ...body }))), to, losses);
}

const HELLO = [{ role: 'user', content: 'hello' }];

function lost(body: Record<string, unknown>, to = target()): string[] {
  const losses = new Losses();
  fromChat(body, to, losses);
  return losses.dropped.map(({ what }) => what);
}

function refused(body: Record<string, unknown>, to = target()): string {
  try {
    fromChat(body, to);
  } catch (error) {
    if (error instanceof Uncarried) return error.feature;
    throw error;
  }
  return '';
}

const WEATHER = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a place',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
};

test('a turn with instructions, a call and its result encodes completely', () => {
  const body = fromChat({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'Weather in Rome and Oslo?' },
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          {
            id: 'a',
            type: 'function',
            function: { name: 'weather', arguments: '{"place":"Rome","n":12345678901234567890}' },
          },
          { id: 'b', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'b', content: '{"t":-3}' },
      { role: 'tool', tool_call_id: 'a', content: 'warm' },
      { role: 'user', content: 'Thanks' },
    ],
    tools: [WEATHER],
    tool_choice: 'auto',
    max_tokens: 50,
  });
  assert.deepEqual(body.systemInstruction, { parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] });
  assert.deepEqual(
    body.contents.map(({ role }: Json) => role),
    ['user', 'model', 'user', 'user'],
  );
  assert.deepEqual(body.contents[1].parts, [
    { text: 'Let me look.' },
    // biome-ignore lint/correctness/noPrecisionLoss: read back as a double here; the digits are checked below
    { functionCall: { id: 'a', name: 'weather', args: { place: 'Rome', n: 12345678901234567890 } } },
    { functionCall: { id: 'b', name: 'weather', args: { place: 'Oslo' } } },
  ]);
  // In call order, in one content, as many as there are calls.
  assert.deepEqual(body.contents[2].parts, [
    { functionResponse: { id: 'a', name: 'weather', response: { output: 'warm' } } },
    { functionResponse: { id: 'b', name: 'weather', response: { output: '{"t":-3}' } } },
  ]);
  assert.deepEqual(body.tools, [
    {
      functionDeclarations: [
        {
          name: 'weather',
          description: 'The weather of a place',
          parametersJsonSchema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
        },
      ],
    },
  ]);
  assert.deepEqual(body.toolConfig, { functionCallingConfig: { mode: 'AUTO' } });
  assert.deepEqual(body.generationConfig, { maxOutputTokens: 50 });
  assert.ok(!('model' in body) && !('stream' in body), 'both are in the path');
});

test('arguments keep their digits, failed results become errors, several texts stay separate', () => {
  const conversation: Conversation = {
    messages: [
      { role: 'user', parts: [{ type: 'text', text: 'x' }] },
      {
        role: 'assistant',
        parts: [{ type: 'toolCall', id: 'c', name: 'f', arguments: '{"n":9007199254740993,"m":1.0}' }],
      },
      {
        role: 'tool',
        parts: [
          {
            type: 'toolResult',
            callId: 'c',
            isError: true,
            parts: [
              { type: 'text', text: 'one' },
              { type: 'text', text: 'two' },
            ],
          },
        ],
      },
    ],
    settings: {},
  };
  const text = stringifyJson(gemini.encode(conversation, target(), new Losses()));
  assert.ok(text.includes('"args":{"n":9007199254740993,"m":1}'), text);
  assert.ok(text.includes('"response":{"error":["one","two"]}'), text);
});

test('every tool choice maps to its mode', () => {
  const choose = (tool_choice: unknown) =>
    fromChat({ tools: [WEATHER], tool_choice }).toolConfig?.functionCallingConfig;
  assert.deepEqual(choose('auto'), { mode: 'AUTO' });
  assert.deepEqual(choose('none'), { mode: 'NONE' });
  assert.deepEqual(choose('required'), { mode: 'ANY' });
  const named = { type: 'function', function: { name: 'weather' } };
  assert.deepEqual(choose(named), { mode: 'ANY', allowedFunctionNames: ['weather'] });
  const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } };
  assert.deepEqual(choose(allowed), { mode: 'ANY', allowedFunctionNames: ['weather'] });
  assert.equal(choose(undefined), undefined);
  const strict = { ...WEATHER, function: { ...WEATHER.function, strict: true } };
  assert.deepEqual(fromChat({ tools: [strict] }).toolConfig.functionCallingConfig, { mode: 'VALIDATED' });
});

test('unsupported schema keywords are rewritten where possible, else dropped and reported', () => {
  const parameters = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      kind: { const: 'a' },
      count: { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10 },
      share: { type: 'number', exclusiveMinimum: 0 },
      const: { type: 'string', examples: ['x'] },
      tree: { $ref: '#/$defs/node' },
      either: { oneOf: [{ type: 'string' }, { type: 'null' }] },
      both: { allOf: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }], required: ['b'] },
      never: { not: { type: 'string' } },
    },
    additionalProperties: false,
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
  };
  const losses = new Losses();
  const body = fromChat({ tools: [{ type: 'function', function: { name: 'f', parameters } }] }, target(), losses);
  assert.deepEqual(body.tools[0].functionDeclarations[0].parametersJsonSchema, {
    type: 'object',
    properties: {
      kind: { enum: ['a'] },
      count: { type: 'integer', minimum: 1, maximum: 9 },
      share: { type: 'number' },
      const: { type: 'string' },
      tree: { $ref: '#/$defs/node' },
      either: { oneOf: [{ type: 'string' }, { type: 'null' }] },
      both: { required: ['b', 'a'], type: 'object', properties: { a: { type: 'string' } } },
      never: {},
    },
    additionalProperties: false,
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
  });
  assert.deepEqual(losses.dropped, [
    { what: 'parameters of the tool f', why: 'the provider does not accept exclusiveMinimum, not in a schema' },
  ]);
  const none = fromChat({
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
  });
  assert.deepEqual(none.tools[0].functionDeclarations, [{ name: 'f' }]);
});

test('thinking uses the parameters and bounds of the model', () => {
  const thinking = (model: string, reasoning: unknown, more = {}) =>
    fromChat({ reasoning, max_tokens: 40_000, ...more }, target(model)).generationConfig.thinkingConfig;
  const shown = { includeThoughts: true };
  assert.deepEqual(thinking('gemini-2.5-flash', { effort: 'high' }), { ...shown, thinkingBudget: 24_576 });
  assert.deepEqual(thinking('gemini-2.5-flash', { effort: 'low' }), { ...shown, thinkingBudget: 8_000 });
  assert.deepEqual(thinking('gemini-2.5-flash', { effort: 'none' }), { includeThoughts: false, thinkingBudget: 0 });
  assert.deepEqual(thinking('gemini-2.5-pro', { max_tokens: 100_000 }), { ...shown, thinkingBudget: 32_768 });
  assert.deepEqual(thinking('gemini-2.5-pro', { effort: 'none' }), { includeThoughts: false, thinkingBudget: 128 });
  assert.deepEqual(thinking('gemini-2.5-flash-lite', { max_tokens: 100 }), { ...shown, thinkingBudget: 512 });
  assert.deepEqual(thinking('gemini-3-pro-preview', { effort: 'medium' }), { ...shown, thinkingLevel: 'high' });
  assert.deepEqual(thinking('gemini-3.1-pro', { effort: 'medium' }), { ...shown, thinkingLevel: 'medium' });
  assert.deepEqual(thinking('gemini-3-flash-preview', { effort: 'minimal' }), { ...shown, thinkingLevel: 'minimal' });
  assert.deepEqual(thinking('gemini-3-flash-preview', { effort: 'xhigh' }), { ...shown, thinkingLevel: 'high' });
  assert.deepEqual(thinking('gemini-3-pro-preview', { max_tokens: 8_000 }), { ...shown, thinkingLevel: 'low' });
  assert.deepEqual(thinking('gemini-3-pro-preview', { effort: 'low', exclude: true }), {
    includeThoughts: false,
    thinkingLevel: 'low',
  });
  assert.equal(thinking('gemini-2.0-flash', { effort: 'high' }), undefined);
  assert.equal(thinking('gemini-2.5-flash', undefined), undefined);
  assert.deepEqual(lost({ reasoning: { effort: 'high' } }, target('gemini-2.0-flash')), ['reasoning']);
  assert.deepEqual(lost({ reasoning: { effort: 'none' } }, target('gemini-3-pro-preview')), ['reasoning']);
});

test('sampling, JSON output, several choices, log probabilities and tiers are encoded', () => {
  const losses = new Losses();
  const body = fromChat(
    {
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      stop: ['a', 'b'],
      n: 2,
      logprobs: true,
      top_logprobs: 3,
      service_tier: 'flex',
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', $schema: 's' } } },
    },
    target(),
    losses,
  );
  assert.deepEqual(body.generationConfig, {
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    stopSequences: ['a', 'b'],
    responseLogprobs: true,
    logprobs: 3,
    candidateCount: 2,
    responseMimeType: 'application/json',
    responseJsonSchema: { type: 'object' },
  });
  assert.equal(body.serviceTier, 'flex');
  assert.deepEqual(losses.dropped, []);
  assert.deepEqual(fromChat({ response_format: { type: 'json_object' } }).generationConfig, {
    responseMimeType: 'application/json',
  });
});

test('unsupported fields are reported or refused by name', () => {
  const knobs = { min_p: 0.1, logit_bias: { 1: 1 }, repetition_penalty: 1.1, parallel_tool_calls: false, future: 1 };
  assert.deepEqual(lost(knobs).sort(), ['future', 'logit_bias', 'min_p', 'parallel_tool_calls', 'repetition_penalty']);
  assert.equal(refused({ stop: ['1', '2', '3', '4', '5', '6'] }), 'stop');
  assert.equal(refused({ n: 9 }), 'n');
  assert.equal(refused({ response_format: { type: 'grammar', grammar: 'x' } }), 'response_format');
  const json = { tools: [WEATHER], response_format: { type: 'json_object' } };
  assert.equal(refused(json), 'response_format');
  assert.equal(refused(json, target('gemini-3-flash-preview')), '');
  assert.equal(refused({ messages: [{ role: 'system', content: 'alone' }] }), 'messages');
  assert.equal(refused({ tools: [{ type: 'strange' }] }), 'tools of type strange');
  const orphan = [...HELLO, { role: 'tool', tool_call_id: 'nobody', content: 'x' }];
  assert.equal(refused({ messages: orphan }), 'tool results');
});

test('members of the vendor cannot raise the output cap or the number of answers', () => {
  const own = { maxOutputTokens: 9e9, max_output_tokens: '9000000000', candidateCount: 8, temperature: 1 };
  const google = { generationConfig: { ...own, candidate_count: 8 } };
  const config = (body: Record<string, unknown>, more: Partial<EncodeTarget> = {}) =>
    fromChat(body, target(undefined, more)).generationConfig;
  assert.deepEqual(config({ max_tokens: 10, google }), { maxOutputTokens: 10, temperature: 1 });
  assert.deepEqual(config({ max_tokens: 10, extra_body: { google } }), { maxOutputTokens: 10, temperature: 1 });
  assert.deepEqual(config({ google }, { capOutputTokens: 30 }), { maxOutputTokens: 30, temperature: 1 });
  assert.deepEqual(config({ google }, { maxOutputTokens: 40 }), { maxOutputTokens: 40, temperature: 1 });
  assert.deepEqual(config({ max_tokens: 10, google: { generation_config: { max_output_tokens: 5 } } }), {
    maxOutputTokens: 5,
  });
  assert.equal(lost({ max_tokens: 10, google }).length, 3);
});

test('built-in tools and settings pass unchanged', () => {
  const safety = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }];
  const body = fromChat({
    tools: [{ googleSearch: {} }],
    safety_settings: safety,
    google: { cached_content: 'cachedContents/1', media_resolution: 'MEDIA_RESOLUTION_LOW' },
  });
  assert.deepEqual(body.tools, [{ googleSearch: {} }]);
  assert.deepEqual(body.safetySettings, safety);
  assert.equal(body.cachedContent, 'cachedContents/1');
  assert.deepEqual(body.generationConfig, { mediaResolution: 'MEDIA_RESOLUTION_LOW' });
  const typed = [{ type: 'code_execution' }, { type: 'google_search', timeRangeFilter: { startTime: 't' } }];
  assert.deepEqual(fromChat({ tools: typed }).tools, [
    { codeExecution: {} },
    { googleSearch: { timeRangeFilter: { startTime: 't' } } },
  ]);
  assert.deepEqual(fromChat({ web_search_options: {} }).tools, [{ googleSearch: {} }]);
  assert.equal(refused({ tools: [WEATHER], web_search_options: {} }), 'tools');
  const mixed = fromChat({ tools: [WEATHER], web_search_options: {} }, target('gemini-3-pro-preview'));
  assert.deepEqual(mixed.toolConfig, { includeServerSideToolInvocations: true });
  assert.deepEqual(lost({ labels: { team: 'a' } }), ['labels']);
  const cloud = target('gemini-2.5-flash', { dialect: { gemini: { labels: true } } });
  assert.deepEqual(fromChat({ labels: { team: 'a' } }, cloud).labels, { team: 'a' });
});

test('image and speech output are requested with the fields of this format', () => {
  const picture = fromChat({ modalities: ['image', 'text'], image_config: { aspect_ratio: '16:9', image_size: '2K' } });
  assert.deepEqual(picture.generationConfig, {
    responseModalities: ['IMAGE', 'TEXT'],
    imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
  });
  const speech = fromChat({ modalities: ['text', 'audio'], audio: { voice: 'Kore', format: 'pcm16' } });
  assert.deepEqual(speech.generationConfig, {
    responseModalities: ['AUDIO'],
    speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
  });
});

test('a model name cannot escape its path segment', () => {
  const path = gemini.path as (model: string, stream: boolean) => string;
  assert.equal(path('models/gemini-2.5-pro', true), '/models/gemini-2.5-pro:streamGenerateContent?alt=sse');
  assert.equal(path('gemini-2.5-pro', false), '/models/gemini-2.5-pro:generateContent');
  assert.equal(path('../x?key=1#', false), '/models/..%2Fx%3Fkey%3D1%23:generateContent');
});
