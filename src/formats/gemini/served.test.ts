/** The served half of the format: what is refused by its path, and recorded answers that are relayed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { corpusMissing, readServerSentEvents, recordings } from '../../testing/recordings/corpus.ts';
import { exactText, parsedExactly } from '../../testing/recordings/recorded-answer.ts';
import { gemini } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: replies are read freely
type Json = any;

const hi = { role: 'user', parts: [{ text: 'hi' }] };
const call = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] };

test('what is wrong is refused by its path', () => {
  const refused: [object, string][] = [
    [{ cachedContent: 'cachedContents/1' }, 'cachedContent'],
    [{ cached_content: 'cachedContents/1' }, 'cachedContent'],
    [{ deferred_tools: {} }, 'deferred_tools'],
    [{ generationConfig: {}, generation_config: {} }, 'generation_config'],
    [{ generationConfig: { maxOutputTokens: 5, max_output_tokens: 9_000 } }, 'generationConfig.max_output_tokens'],
    [{ generationConfig: { maxOutputTokens: '5' } }, 'generationConfig.maxOutputTokens'],
    [{ generationConfig: { max_output_tokens: 0 } }, 'generationConfig.maxOutputTokens'],
    [{ generationConfig: { candidateCount: 1_000 } }, 'generationConfig.candidateCount'],
    [{ generationConfig: { temperature: 3 } }, 'generationConfig.temperature'],
    [{ generationConfig: { responseMimeType: 'text/x.enum' } }, 'generationConfig.responseMimeType'],
    [{ generationConfig: { responseSchema: 5 } }, 'generationConfig.responseSchema'],
    [{ generationConfig: { responseSchema: {} } }, 'generationConfig.responseMimeType'],
    [
      { generationConfig: { responseJsonSchema: {}, responseMimeType: 'text/plain' } },
      'generationConfig.responseMimeType',
    ],
    [{ generationConfig: { responseSchema: {}, response_json_schema: {} } }, 'generationConfig.responseSchema'],
    [
      { generationConfig: { thinkingConfig: { thinkingLevel: 'LOW', thinkingBudget: 9 } } },
      'generationConfig.thinkingConfig.thinkingBudget',
    ],
    [
      { generationConfig: { thinkingConfig: { thinkingBudget: 9, thinking_budget: 1 } } },
      'generationConfig.thinkingConfig.thinking_budget',
    ],
    [
      { generationConfig: { thinkingConfig: { includeThoughts: 'yes' } } },
      'generationConfig.thinkingConfig.includeThoughts',
    ],
    [{ generationConfig: { stopSequences: [5] } }, 'generationConfig.stopSequences[0]'],
    [{ generationConfig: { thinkingConfig: 5 } }, 'generationConfig.thinkingConfig'],
    [
      { generationConfig: { thinkingConfig: { thinkingBudget: 1.5 } } },
      'generationConfig.thinkingConfig.thinkingBudget',
    ],
    [
      { generationConfig: { thinkingConfig: { thinkingLevel: 'constructor' } } },
      'generationConfig.thinkingConfig.thinkingLevel',
    ],
    [{ generation_config: 'x' }, 'generationConfig'],
    [{ system_instruction: 'be brief' }, 'systemInstruction'],
    [{ systemInstruction: { parts: [{ inlineData: {} }] } }, 'systemInstruction.parts[0]'],
    [{ tools: [{ functionDeclarations: [{ name: '' }] }] }, 'tools[0].functionDeclarations[0].name'],
    [
      { tools: [{ functionDeclarations: [{ name: 'f', parameters: 5 }] }] },
      'tools[0].functionDeclarations[0].parameters',
    ],
    [{ tools: [{ type: 'svc:nothing' }] }, 'tools[0].type'],
    [{ toolConfig: { functionCallingConfig: { mode: 'SOME' } } }, 'toolConfig.functionCallingConfig.mode'],
    [
      { toolConfig: { functionCallingConfig: { allowedFunctionNames: ['x'] } } },
      'toolConfig.functionCallingConfig.allowedFunctionNames',
    ],
    [{ contents: [{ parts: [] }] }, 'contents'],
    [{ contents: [{ parts: 'x' }] }, 'contents[0].parts'],
    [{ contents: [{ role: 'assistant', parts: [] }] }, 'contents[0].role'],
    [{ contents: [{ parts: [{}] }] }, 'contents[0].parts[0]'],
    [{ contents: [{ parts: [{ text: 5 }] }] }, 'contents[0].parts[0].text'],
    [{ contents: [{ parts: [{ text: 'a', inline_data: {} }] }] }, 'contents[0].parts[0].inline_data'],
    [{ contents: [{ parts: [{ fileData: {}, file_data: {} }] }] }, 'contents[0].parts[0].file_data'],
    [
      { contents: [hi, { role: 'model', parts: [{ text: 'a', ...call.parts[0] }] }] },
      'contents[1].parts[0].functionCall',
    ],
    [{ systemInstruction: { parts: [{ text: 'a', fileData: {} }] } }, 'systemInstruction.parts[0].fileData'],
    [
      { contents: [{ parts: [{ inlineData: { mimeType: 'x', data: '' } }] }] },
      'contents[0].parts[0].inlineData.mimeType',
    ],
    [{ contents: [{ parts: [{ inlineData: { mimeType: 'image/png' } }] }] }, 'contents[0].parts[0].inlineData.data'],
    [{ contents: [{ parts: [{ fileData: { fileUri: 'files/1' } }] }] }, 'contents[0].parts[0].fileData.fileUri'],
    [{ contents: [{ parts: [{ fileData: { fileUri: 'file:///etc' } }] }] }, 'contents[0].parts[0].fileData.fileUri'],
    [{ contents: [{ parts: [{ functionResponse: { name: 'f' } }] }] }, 'contents[0].parts[0].functionResponse'],
    [
      { contents: [hi, call, { parts: [{ functionResponse: { name: 'f', response: 5 } }] }] },
      'contents[2].parts[0].functionResponse.response',
    ],
    [
      { contents: [hi, { role: 'model', parts: [{ functionCall: { name: 'f', args: 'x' } }] }] },
      'contents[1].parts[0].functionCall.args',
    ],
    [{ models: ['a/@preset/x'] }, 'models[0]'],
  ];
  for (const [more, path] of refused) {
    assert.throws(
      () => gemini.check({ model: 'a/b', contents: [hi], ...more }),
      (error) => {
        assert.ok(error instanceof GatewayError && error.status === 400, String(error));
        assert.equal(error.details.path, path);
        assert.ok(error.message.startsWith(path), error.message);
        return true;
      },
    );
  }
});

/** The reply without the members that the gateway writes. */
function withoutOwn(text: string, counted: boolean): string {
  const { responseId: _, modelVersion: __, provider: ___, usageMetadata = {}, ...reply } = parsedExactly(text) as Json;
  const { cost: _cost, is_byok: _byok, cost_details: _details, ...counts } = usageMetadata;
  return exactText(counted ? { ...reply, counts } : reply);
}

test('a recorded answer is relayed with nothing lost', { skip: corpusMissing }, async () => {
  let relayed = 0;
  for (const recording of recordings(['generate'], /google|vertex/)) {
    const { status, stream, headers, bytes, text, id } = recording;
    if (status !== 200) continue;
    const asked = { served: 'gemini', kind: 'gemini', spoken: 'gemini', stream } as const;
    const answer = await playThrough(asked, { status, headers, pieces: [bytes] });
    if (answer.status !== 200 || answer.row.error !== null) continue;
    const wrote = stream ? recording.events.map(({ data }) => data) : [text];
    const got = stream ? readServerSentEvents(answer.text).map(({ data }) => data) : [answer.text];
    if (!stream && Array.isArray(JSON.parse(text))) continue;
    assert.equal(got.length, wrote.length, id);
    wrote.forEach((event, at) => {
      // Counts that the service does not give are estimated.
      const counted = event.includes('"usageMetadata"');
      assert.equal(withoutOwn(got[at]!, counted), withoutOwn(event, counted), id);
    });
    relayed += 1;
  }
  assert.ok(relayed >= 20, `${relayed} answers`);
});

test('recorded requests are understood', { skip: corpusMissing }, () => {
  let asked = 0;
  for (const { id, request } of recordings(['generate'], /google/)) {
    if (request === undefined || !Array.isArray(request['contents'])) continue;
    try {
      gemini.check(request);
      asked += 1;
    } catch (error) {
      assert.match((error as Error).message, /fileUri must be|cachedContent|text\/plain or/, id);
    }
  }
  assert.ok(asked >= 7, `${asked} requests`);
});

test('every result belongs to its call, whichever calls have an id and however they are called', () => {
  const calls = (...given: [name: string, id?: string][]) => ({
    role: 'model',
    parts: given.map(([name, id]) => ({ functionCall: { name, ...(id && { id }) } })),
  });
  const results = (...given: [name: string, id?: string][]) => ({
    parts: given.map(([name, id]) => ({ functionResponse: { name, response: { output: name }, ...(id && { id }) } })),
  });
  const histories = [
    [calls(['f', 'call_1'], ['g']), results(['g'], ['f', 'call_1'])],
    [calls(['f'], ['g', 'call_0']), results(['g', 'call_0'], ['f'])],
    [calls(['f', 'c'], ['g', 'c']), results(['g', 'c'], ['f', 'c'])],
    [calls(['f', 'c']), results(['f', 'c']), calls(['g', 'c']), results(['g', 'c'])],
    [calls(['f', 'c'], ['f']), results(['f'], ['f', 'c'])],
  ];
  for (const history of histories) {
    const { messages } = gemini.decode({ contents: [hi, ...history] });
    const open = new Map<string, string>();
    for (const part of messages.flatMap(({ parts }) => parts)) {
      if (part.type === 'toolCall') {
        assert.ok(!open.has(part.id), `two open calls are ${part.id}`);
        open.set(part.id, part.name);
      } else if (part.type === 'toolResult') {
        assert.deepEqual(part.parts, [{ type: 'text', text: open.get(part.callId) }]);
        open.delete(part.callId);
      }
    }
    assert.equal(open.size, 0);
  }
});

test('a member that mixes both spellings is unknown', () => {
  const { settings, extras } = gemini.decode({ contents: [hi], generationConfig: { max_outputTokens: 5, top_k: 3 } });
  assert.deepEqual([settings, extras?.gemini], [{ topK: 3 }, { generationConfig: { max_outputTokens: 5 } }]);
});
