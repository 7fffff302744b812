/** The bodies that the benchmark sends, and the mock upstream's answers of ordinary text. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { framesOf } from './pairs.mjs';

const ASCII = 'the quick brown fox jumps over the lazy dog ';
/** What people and models write: nearly every real body has some characters outside ASCII, and most have some outside Latin-1. */
const TEXT =
  'The café’s owner – “naïve”, as Zoë says – opened at nine; it’s 5 °C outside… She paid €12 for a crème brûlée 🍮, ' +
  'and wrote 東京駅で会いましょう on a card. Élodie’s résumé says “fluent”, which isn’t true – yet 😀. ';
/** In a body, it makes the mock upstream answer without pauses. */
const NO_DELAY = 'nodelay ';

/** About `bytes` of JSON. Chat bodies have messages of at most 2 KB, or those of a coding agent (`agent`). */
export function requestBody(
  { name, forms },
  form,
  { bytes, served, agent, text = false, stream = false, paced = true },
) {
  const { model } = forms[form];
  const words = `${text ? TEXT : ASCII}${paced ? '' : NO_DELAY}`;
  if (form === 'embeddings') {
    const input = Array.from({ length: 100 }, (_, index) => `${index} ${words}`);
    return JSON.stringify({ model, input });
  }
  if (agent) return agentBody(model, bytes, name);
  const messages = [];
  for (let left = bytes - 150; left > 0; left -= 2000) {
    messages.push({
      role: messages.length % 2 === 0 ? 'user' : 'assistant',
      content: fill(words, Math.min(left, 1950)),
    });
  }
  if (messages.length % 2 === 0) messages.push({ role: 'user', content: 'go on' });
  if (served === 'responses') return JSON.stringify({ model, input: messages, max_output_tokens: 256, stream });
  return JSON.stringify({ model, messages, max_tokens: 256, stream });
}

/** The words, repeated up to a number of bytes of UTF-8. */
function fill(words, bytes) {
  const repeated = Buffer.from(words.repeat(Math.ceil(bytes / Buffer.byteLength(words))));
  let end = Math.min(bytes, repeated.length);
  while (end > 0 && (repeated[end] & 0xc0) === 0x80) end--;
  return repeated.toString('utf8', 0, end);
}

const TURNS = 40;
const TOOLS = 20;

/** The request of a coding agent in its fortieth turn: a long system message, tools with schemas, calls and what they returned. */
function agentBody(model, bytes) {
  const tools = Array.from({ length: TOOLS }, (_, index) => toolOf(index));
  const messages = [
    { role: 'system', content: fill(TEXT, 16_000) },
    { role: 'user', content: 'Find out why the build fails – and mend it, please.' },
  ];
  const fixed = Buffer.byteLength(JSON.stringify({ model, messages, tools }));
  const result = (bytes - fixed) / TURNS - 650;
  for (let turn = 0; turn < TURNS; turn++) {
    const id = `call_${turn}_abcdefghijklmnop`;
    const args = JSON.stringify({ path: `/home/user/project/src/part-${turn}.ts`, offset: turn, limit: 200 });
    const call = { id, type: 'function', function: { name: `tool_${turn % TOOLS}`, arguments: args } };
    messages.push(
      { role: 'assistant', content: fill(TEXT, 200), tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: listing(result) },
    );
  }
  return JSON.stringify({ model, messages, tools, tool_choice: 'auto', max_tokens: 256, stream: false });
}

function toolOf(index) {
  const property = (name) => [name, { type: 'string', description: fill(ASCII, 120), enum: undefined, minLength: 1 }];
  const names = ['path', 'offset', 'limit', 'pattern', 'include', 'command', 'timeout', 'description'];
  const parameters = {
    type: 'object',
    properties: Object.fromEntries(names.map(property)),
    required: names.slice(0, 2),
  };
  return {
    type: 'function',
    function: {
      name: `tool_${index}`,
      description: fill(ASCII, 900),
      parameters: { ...parameters, additionalProperties: false },
    },
  };
}

/** A source file: quotes and line breaks make escapes, and here and there a character is outside ASCII. */
function listing(bytes) {
  const lines = [
    '  const message = prefix + " failed: " + error.message;\n',
    "  if (entry === undefined) throw new Error('no such entry');\n",
    '  /** Reads the entries in their order – those without a name first. */\n',
    '\treturn entries.filter(({ name }) => name !== "").map((entry) => entry.value);\n',
  ].join('');
  // Each of the eight line breaks, tabs and quotes takes one byte more as JSON.
  return fill(lines, Math.floor(bytes * 0.955));
}

/** Files of answers of ordinary text for the mock upstream. @returns its arguments */
export function writeAnswers(folder) {
  const file = path.join(folder, 'text.json');
  writeFileSync(file, framesOf([ANSWER]));
  const stream = path.join(folder, 'text.frames');
  writeFileSync(stream, framesOf(textStream()));
  return [`/text/=text/event-stream=${stream}`, `/text/=application/json=${file}`];
}

const ANSWER = JSON.stringify({
  id: 'chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ01',
  object: 'chat.completion',
  created: 1735689600,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: fill(TEXT, 430), refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 231,
    completion_tokens: 118,
    total_tokens: 349,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  },
  service_tier: 'default',
  system_fingerprint: 'fp_0123456789',
});

/** As the mock upstream's own stream: 250 events of about 270 bytes, then usage. */
function textStream() {
  const head = {
    id: 'chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ01',
    object: 'chat.completion.chunk',
    created: 1735689600,
    model: 'gpt-4o-mini-2024-07-18',
    system_fingerprint: 'fp_0123456789',
  };
  const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
  const pieces = [...fill(TEXT, 1000)].join('').match(/\S+\s*/gu);
  const events = Array.from({ length: 250 }, (_, index) => {
    const content = ` ${pieces[index % pieces.length]}${pieces[(index + 1) % pieces.length]}`;
    return data({ ...head, choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] });
  });
  const usage = { prompt_tokens: 231, completion_tokens: 200, total_tokens: 431 };
  return [...events, `${data({ ...head, choices: [], usage })}data: [DONE]\n\n`];
}
