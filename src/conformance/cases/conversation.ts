/** What is lost between a client and an upstream of the same or of two formats. */
import type { Asked, Heard, Said, Tool, Usage } from '../formats/dialogue.ts';
import { PRICES } from '../gateways.ts';
import {
  arrivedOf,
  type Exchange,
  FORMATS,
  formatOf,
  jsonScript,
  type Place,
  type Session,
  STREAM_TYPE,
} from '../session.ts';
import type { Script } from '../upstreams.ts';
import { Absent, BOTH, type Case, expect, heardOf, Lost, simple } from './case.ts';

const TEXT = 'Hello from the upstream.';
const UNICODE = 'Grüße, 世界! 👩‍👩‍👧 é ‮עברית‬ – “quoted” \\ \t 𝔘';
const REASONING = 'First I think about it, then I say hello.';
const SIGNATURE = `sig${'Zm9v'.repeat(20)}==`;
const REFUSAL = 'I cannot help with that.';
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const LONG_PIECE = 'All work and no play makes a long answer. ';
const LONG_PIECES = 12_000;
const USAGE: Usage = { input: 1000, cached: 400, output: 50, reasoning: 20 };

const TOOLS: readonly Tool[] = ['weather', 'time'].map((name) => ({
  name: `get_${name}`,
  description: `Returns the ${name} of a city.`,
  parameters: { type: 'object', properties: { city: { type: 'string', description: 'Its name' } }, required: ['city'] },
}));
const CALLS = TOOLS.map(({ name }, index) => ({
  ...{ id: `call_${index}abc`, name, arguments: JSON.stringify({ city: index === 0 ? 'Zürich' : 'Paris' }) },
}));
const CALLED = CALLS[0]!;

function said(more: Partial<Said> = {}): Said {
  return { text: TEXT, reasoning: '', signature: '', refusal: '', calls: [], stop: 'stop', usage: USAGE, ...more };
}

/** Whole, or a stream of words; of larger pieces where the text is long. */
function scriptOf(answer: Said, { upstream, streamed }: Place, splitBytes = 0): Script {
  const format = formatOf(upstream);
  if (!streamed) return jsonScript(format.whole(answer));
  const pieces = answer.text.match(answer.text.length > 1000 ? /.{1,1000} /gs : /\S+\s*/g) ?? [];
  const frames = format.frames(answer, pieces).map(({ text }) => text);
  if (splitBytes === 0) return { headers: STREAM_TYPE, steps: frames };
  const bytes = Buffer.from(frames.join(''));
  const count = Math.ceil(bytes.length / splitBytes);
  const steps = Array.from({ length: count }, (_, at) => bytes.subarray(at * splitBytes, (at + 1) * splitBytes));
  return { headers: STREAM_TYPE, steps };
}

interface Talk {
  asked?(tag: string): Asked;
  answer?: Partial<Said>;
  splitBytes?: number;
  check(heard: Heard, exchange: Exchange, place: Place): void;
}

function talk(
  feature: string,
  { asked = simple, answer = {}, splitBytes, check }: Talk,
  more: Partial<Case> = {},
): Case {
  return {
    ...{ feature, scope: 'pair', modes: BOTH },
    ...more,
    async run(session, place) {
      const script = () => scriptOf(said(answer), place, splitBytes);
      const exchange = await session.ask(place, { asked, script });
      check(heardOf(exchange), exchange, place);
    },
  };
}

const anyIs = (name: string) => (place: Place) => [place.client, place.upstream].includes(name as Place['client']);

const REQUEST_CASES: readonly Case[] = [
  talk('system prompt', {
    asked: (tag) => simple(tag, { system: 'Answer in French.' }),
    check: (_, exchange, { upstream }) => expect('system', arrivedOf(exchange, upstream).system, 'Answer in French.'),
  }),
  talk('turns', {
    asked: (tag) => ({
      turns: [
        { role: 'user', text: 'One.' },
        { role: 'assistant', text: 'Two.', calls: [] },
        { role: 'user', text: `${tag} Three.` },
      ],
    }),
    check(_, exchange, { upstream }) {
      const turns = arrivedOf(exchange, upstream).turns.map(
        ({ role, text }) => `${role}: ${text.replace(/^\S+case\S+ /, '')}`,
      );
      expect('turns', turns, ['user: One.', 'assistant: Two.', 'user: Three.']);
    },
  }),
  talk('images', {
    asked: (tag) => ({ turns: [{ role: 'user', text: `${tag} What is it?`, image: PIXEL }] }),
    check: (_, exchange, { upstream }) => expect('image', arrivedOf(exchange, upstream).turns.at(-1)?.images, [PIXEL]),
  }),
  talk('tools', {
    asked: (tag) => simple(tag, { tools: TOOLS }),
    check(_, exchange, { upstream }) {
      const tools = arrivedOf(exchange, upstream).tools.map(({ name, description, parameters }) => {
        const { properties, required } = parameters as { properties?: unknown; required?: unknown };
        return { name, description, parameters: { type: 'object', properties, required } };
      });
      expect('tools', tools, TOOLS);
    },
  }),
  talk('tool choice', {
    asked: (tag) => simple(tag, { tools: TOOLS, choice: TOOLS[1]!.name }),
    check: (_, exchange, { upstream }) => expect('choice', arrivedOf(exchange, upstream).choice, TOOLS[1]!.name),
  }),
  talk('tool results', {
    asked: (tag) => ({
      tools: TOOLS,
      turns: [
        { role: 'user', text: `${tag} Weather and time?` },
        { role: 'assistant', text: '', calls: CALLS },
        { role: 'results', results: CALLS.map(({ id, name }) => ({ id, text: `result of ${name}` })) },
      ],
    }),
    check(_, exchange, { upstream }) {
      const { turns } = arrivedOf(exchange, upstream);
      const calls = turns.flatMap((turn) => turn.calls);
      expect(
        'calls',
        calls.map(({ name, arguments: args }) => [name, JSON.parse(args)]),
        CALLS.map(({ name, arguments: args }) => [name, JSON.parse(args)]),
      );
      const results = turns.flatMap((turn) => turn.results);
      const named = results.map(({ id, text }) => [calls.find((call) => call.id === id)?.name, text]);
      expect(
        'results',
        named,
        CALLS.map(({ name }) => [name, `result of ${name}`]),
      );
    },
  }),
  talk('temperature and token limit', {
    asked: (tag) => simple(tag, { temperature: 0.5, maxTokens: 321 }),
    check(_, exchange, { upstream }) {
      const { temperature, maxTokens } = arrivedOf(exchange, upstream);
      expect('temperature, limit', [temperature, maxTokens], [0.5, 321]);
    },
  }),
  talk(
    'stop sequences',
    {
      asked: (tag) => simple(tag, { stop: 'END' }),
      check: (_, exchange, { upstream }) => expect('stop', arrivedOf(exchange, upstream).stop, 'END'),
    },
    { isOutside: anyIs('responses') },
  ),
  talk('reasoning requested', {
    asked: (tag) => simple(tag, { effort: 'low', maxTokens: 4000 }),
    check: (_, exchange, { upstream }) => expect('reasoning', arrivedOf(exchange, upstream).reasons, true),
  }),
];

function expectCalls(heard: Heard, wanted: readonly (typeof CALLED)[]): void {
  const shape = ({ name, arguments: args }: { name: string; arguments: string }) => {
    try {
      return [name, JSON.parse(args)];
    } catch {
      throw new Lost(`the arguments of ${name} are not JSON: ${args}`);
    }
  };
  expect('calls', heard.calls.map(shape), wanted.map(shape));
  const ids = new Set(heard.calls.map(({ id }) => id));
  if (ids.size !== wanted.length || ids.has('')) throw new Lost('ids of calls are missing or the same');
  expect('end', heard.stop, 'calls');
}

const ANSWER_CASES: readonly Case[] = [
  talk('text', {
    check(heard) {
      expect('text', heard.text, TEXT);
      expect('end', heard.stop, 'stop');
    },
  }),
  talk('Unicode, cut within characters', {
    asked: (tag) => ({ turns: [{ role: 'user', text: `${tag} ${UNICODE}` }] }),
    ...{ answer: { text: UNICODE }, splitBytes: 7 },
    check(heard, exchange, { upstream }) {
      expect('text', heard.text, UNICODE);
      const arrived = arrivedOf(exchange, upstream).turns.at(-1)?.text ?? '';
      if (!arrived.endsWith(UNICODE)) throw new Lost(`the request has ${JSON.stringify(arrived)}`);
    },
  }),
  talk('a tool call', {
    asked: (tag) => simple(tag, { tools: TOOLS }),
    answer: { text: '', calls: [CALLED], stop: 'calls' },
    check: (heard) => expectCalls(heard, [CALLED]),
  }),
  talk('parallel tool calls after text', {
    asked: (tag) => simple(tag, { tools: TOOLS }),
    answer: { calls: CALLS, stop: 'calls' },
    check(heard) {
      expectCalls(heard, CALLS);
      expect('text', heard.text, TEXT);
    },
  }),
  talk('reasoning', {
    asked: (tag) => simple(tag, { effort: 'low', maxTokens: 4000 }),
    answer: { reasoning: REASONING },
    check: (heard) => expect('reasoning', heard.reasoning, REASONING),
  }),
  {
    ...{ feature: 'signatures, sent back with the next turn', scope: 'pair', modes: ['whole'] },
    isOutside: ({ upstream }) => upstream === 'chat',
    run: signaturesReturn,
  },
  talk('end at the token limit', {
    answer: { stop: 'length' },
    check: (heard) => expect('end', heard.stop, 'length'),
  }),
  talk('refusals', {
    answer: { text: '', refusal: REFUSAL, stop: 'refusal' },
    check(heard) {
      expect('text of the refusal', heard.text + heard.refusal, REFUSAL);
      if (heard.stop !== 'refusal' && heard.refusal === '')
        throw new Lost(`a refusal looks like an answer: ${heard.stopText}`);
    },
  }),
  talk('a long answer (0.5 MB)', {
    answer: { text: LONG_PIECE.repeat(LONG_PIECES) },
    check: (heard) => expect('characters', heard.text.length, LONG_PIECE.length * LONG_PIECES),
  }),
  talk('usage', {
    check: ({ usage }) => expect('input, output', [usage?.input, usage?.output], [USAGE.input, USAGE.output]),
  }),
  talk('cached tokens', { check: ({ usage }) => expect('cached', usage?.cached, USAGE.cached) }),
  talk(
    'reasoning tokens',
    { check: ({ usage }) => expect('reasoning', usage?.reasoning, USAGE.reasoning) },
    { isOutside: anyIs('messages') },
  ),
  talk('cost', {
    check(heard, { reply }) {
      const cost = heard.cost ?? costHeader(reply.headers['x-litellm-response-cost']);
      if (cost === undefined) throw new Absent('no cost is reported');
      const { input, cached, output } = USAGE;
      const wanted = (input - cached) * PRICES.input + cached * PRICES.cached + output * PRICES.output;
      expect('USD', cost.toFixed(9), wanted.toFixed(9));
    },
  }),
];

function costHeader(value: string | string[] | undefined): number | undefined {
  return typeof value === 'string' && value !== '' && Number.isFinite(Number(value)) ? Number(value) : undefined;
}

/** The client keeps what it received and sends it back unchanged, with the result of the call. */
async function signaturesReturn(session: Session, place: Place): Promise<void> {
  const first = said({ text: '', reasoning: REASONING, signature: SIGNATURE, calls: [CALLED], stop: 'calls' });
  const more = { tools: TOOLS, effort: 'low', maxTokens: 4000 } as const;
  const called = heardOf(
    await session.ask(place, { asked: (tag) => simple(tag, more), script: () => scriptOf(first, place) }),
  );
  const [call] = called.calls;
  if (call === undefined) throw new Lost('the call is missing');
  const next = await session.ask(place, {
    asked: (tag) => ({
      turns: [
        { role: 'user', text: `${tag} Weather?` },
        { role: 'echo', answer: called.echo },
        { role: 'results', results: [{ id: call.id, text: 'sunny' }] },
      ],
      ...more,
    }),
    script: () => scriptOf(said(), place),
  });
  heardOf(next);
  if (!next.received.at(-1)?.text.includes(SIGNATURE)) throw new Lost('the upstream does not get its signature back');
}

export const CONVERSATION_CASES: readonly Case[] = [...REQUEST_CASES, ...ANSWER_CASES];

/** An answer in the format of an upstream, for cases where its content does not matter. */
export function ordinaryScript(place: Place): Script {
  return scriptOf(said(), place);
}

export function ordinaryFrames(place: Place) {
  const words = TEXT.match(/\S+ ?/g) ?? [];
  return FORMATS[formatOf(place.upstream).name].frames(said(), words);
}
