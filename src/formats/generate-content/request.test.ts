import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatRequestOf, contentReplyOf } from './index.ts';

const HI = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
const bodyOf = (more: object) => chatRequestOf({ ...HI, ...more }, 'acme/m', false).body;

test('settings become those of chat', () => {
  const { body, shape } = chatRequestOf(
    {
      ...HI,
      systemInstruction: { parts: [{ text: 'be brief' }] },
      generationConfig: {
        ...{ temperature: 0.5, topP: 0.9, topK: 40, maxOutputTokens: 100, candidateCount: 2, seed: 7 },
        ...{ stopSequences: ['END'], responseModalities: ['TEXT', 'IMAGE'], imageConfig: { aspectRatio: '16:9' } },
        ...{
          responseMimeType: 'application/json',
          responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
        },
        thinkingConfig: { includeThoughts: true, thinkingBudget: 512 },
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
    },
    'acme/m',
    true,
  );
  assert.deepEqual(body, {
    model: 'acme/m',
    stream: true,
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ],
    ...{ temperature: 0.5, top_p: 0.9, top_k: 40, max_tokens: 100, n: 2, seed: 7, stop: ['END'] },
    modalities: ['text', 'image'],
    image_config: { aspect_ratio: '16:9', image_size: undefined },
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'response', schema: { type: 'object', properties: { a: { type: 'string' } } } },
    },
    reasoning: { max_tokens: 512 },
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  });
  assert.deepEqual(shape, { thoughts: true });
});

test('members may be written in snake_case', () => {
  const snake = bodyOf({
    system_instruction: { parts: [{ text: 'be brief' }] },
    generation_config: { max_output_tokens: 5, thinking_config: { thinking_level: 'low' } },
    contents: [{ parts: [{ inline_data: { mime_type: 'image/png', data: 'AAAA' } }] }],
  });
  assert.equal(snake['max_tokens'], 5);
  assert.deepEqual(snake['reasoning'], { effort: 'low' });
  assert.deepEqual(snake['messages'], [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
  ]);
});

test('an object stands for a list of one', () => {
  const { messages, tools } = bodyOf({
    systemInstruction: { parts: { text: 'be brief' } },
    tools: [{ functionDeclarations: { name: 'f' } }],
  }) as { messages: object[]; tools: object[] };
  assert.deepEqual(messages[0], { role: 'system', content: 'be brief' });
  assert.equal(tools.length, 1);
});

test('calls and responses find each other with and without ids, and results come first', () => {
  const { messages } = bodyOf({
    contents: [
      { role: 'user', parts: [{ text: 'weather?' }] },
      {
        role: 'model',
        parts: [
          { functionCall: { name: 'f', args: { city: 'Rome' } }, thoughtSignature: 'c2ln' },
          { functionCall: { name: 'f', args: { city: 'Oslo' } } },
          { functionCall: { id: 'mine', name: 'g' } },
        ],
      },
      {
        role: 'user',
        parts: [
          { text: 'and?' },
          { functionResponse: { name: 'f', response: { output: 'warm' } } },
          { functionResponse: { id: 'mine', name: 'g', response: { a: 1, b: 2 } } },
          { functionResponse: { name: 'f', response: { error: 'no' } } },
        ],
      },
    ],
    tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT' } }, { name: 'g' }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['g'] } },
  }) as { messages: unknown };
  assert.deepEqual(messages, [
    { role: 'user', content: 'weather?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_0', type: 'function', function: { name: 'f', arguments: '{"city":"Rome"}' } },
        { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"city":"Oslo"}' } },
        { id: 'mine', type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
      reasoning_details: [
        { type: 'reasoning.encrypted', data: 'c2ln', format: 'google-gemini-v1', id: 'call_0', index: 0 },
      ],
    },
    { role: 'tool', tool_call_id: 'call_0', content: 'warm' },
    { role: 'tool', tool_call_id: 'mine', content: '{"a":1,"b":2}' },
    { role: 'tool', tool_call_id: 'call_1', content: '{"error":"no"}' },
    { role: 'user', content: 'and?' },
  ]);
});

test('reasoning of other vendors travels in signatures and returns to its origin, shown or not', () => {
  const details = [
    { type: 'reasoning.text', text: 'I think', signature: 'sig-a', format: 'anthropic-claude-v1', index: 0 },
    { type: 'reasoning.encrypted', data: 'enc-o', format: 'openai-responses-v1', id: 'rs_1', index: 1 },
  ];
  const message = { role: 'assistant', content: 'yes', reasoning: 'I think', reasoning_details: details };
  const reply = { id: 'gen-1', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage: {} };
  for (const thoughts of [true, false]) {
    const { candidates } = contentReplyOf(reply, { thoughts }) as { candidates: { content: { parts: object[] } }[] };
    const shown = JSON.stringify(candidates[0]!.content.parts.map((part) => ({ ...part, thoughtSignature: '' })));
    assert.equal(shown.includes('I think'), thoughts);
    const { messages } = bodyOf({ contents: [...HI.contents, candidates[0]!.content] }) as { messages: object[] };
    const { reasoning_details: back } = messages[1] as { reasoning_details: { index: number }[] };
    assert.deepEqual(
      back.map(({ index: _, ...entry }) => entry),
      details.map(({ index: _, ...entry }) => entry),
    );
  }
});

test('what is not supported is refused by its path', () => {
  const refused: [object, RegExp][] = [
    [{ cachedContent: 'cachedContents/1' }, /^cachedContent is not supported/],
    [{ tools: [{ googleSearch: {} }] }, /^tools\[0\]\.googleSearch is not supported/],
    [{ tools: [{ codeExecution: {} }] }, /^tools\[0\]\.codeExecution is not supported/],
    [{ generationConfig: { responseMimeType: 'text/x.enum' } }, /^generationConfig\.responseMimeType must be/],
    [
      { generationConfig: { thinkingConfig: { thinkingBudget: 1.5 } } },
      /^generationConfig\.thinkingConfig\.thinkingBudget/,
    ],
    [
      { generationConfig: { stopSequences: ['a', 'b', 'c', 'd', 'e'] } },
      /^generationConfig\.stopSequences must have at most 4/,
    ],
    [{ generationConfig: { newThing: 1 } }, /^generationConfig\.newThing is not supported/],
    [{ generationConfig: { constructor: 1 } }, /^generationConfig\.constructor is not supported/],
    [{ generationConfig: { stopSequences: 'END' } }, /^generationConfig\.stopSequences must be a list/],
    [{ generation_config: { response_modalities: 'IMAGE' } }, /^generationConfig\.responseModalities must be a list/],
    [{ generationConfig: { thinkingConfig: 5 } }, /^generationConfig\.thinkingConfig must be an object/],
    [{ generation_config: 'x' }, /^generationConfig must be an object/],
    [{ system_instruction: 'be brief' }, /^systemInstruction must be an object/],
    [{ systemInstruction: { parts: 'x' } }, /^systemInstruction\.parts must be a list/],
    [{ tools: [{ functionDeclarations: 'f' }] }, /^tools\[0\]\.functionDeclarations must be a list/],
    [{ tools: [{ functionDeclarations: [{ name: 'f', parameters: 5 }] }] }, /declarations\[0\]\.parameters must be/i],
    [
      { toolConfig: { functionCallingConfig: { allowedFunctionNames: 'f' } } },
      /^toolConfig\.functionCallingConfig\.allowedFunctionNames must be a list/,
    ],
    [{ contents: [{ parts: [] }] }, /^contents must have a part/],
    [
      { contents: [{ role: 'model', parts: [{ functionCall: { name: 'f', args: 'x' } }] }] },
      /functionCall\.args must be/,
    ],
    [{ contents: [{ role: 'assistant', parts: [] }] }, /^contents\[0\]\.role must be user or model/],
    [
      { contents: [{ parts: [{ fileData: { fileUri: 'gs://b/o' } }] }] },
      /^contents\[0\]\.parts\[0\]\.fileData\.fileUri must be/,
    ],
    [{ contents: [{ parts: [{ functionResponse: { name: 'f' } }] }] }, /functionResponse answers no function call/],
    [
      { contents: [{ role: 'model', parts: [{ executableCode: {} }] }] },
      /cannot be sent back to a model: executableCode/,
    ],
    [{ contents: [{ parts: [{}] }] }, /^contents\[0\]\.parts\[0\] must have text/],
    [
      { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['x'] } } },
      /^toolConfig\.functionCallingConfig\.allowedFunctionNames names a function/,
    ],
  ];
  for (const [more, message] of refused) {
    assert.throws(
      () => bodyOf(more),
      (error: Error & { details?: { path?: string } }) => {
        assert.match(error.message, message);
        return true;
      },
    );
  }
});
