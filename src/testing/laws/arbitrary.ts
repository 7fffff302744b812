/**
 * Generators of conversations and answers for the translation laws (tests only). The options say what a format can
 * express; everything generated must survive a round trip through that format unchanged.
 */
import fc, { type Arbitrary } from 'fast-check';
import type {
  Choice,
  Conversation,
  FinishReason,
  FormatId,
  FunctionTool,
  Message,
  OutputFormat,
  Part,
  ReasoningOrigin,
  ReasoningPart,
  ReasoningSettings,
  Settings,
  Source,
  ToolCallPart,
  ToolChoice,
  Turn,
  Usage,
} from '../../formats/conversation/conversation.ts';
import { EFFORTS } from '../../formats/conversation/effort.ts';

export interface Abilities {
  /** The format whose unknown members are generated in `extras`. */
  format: FormatId;
  /** Roles of leading instructions. */
  instructions: readonly ('system' | 'developer')[];
  /** Kinds of part in user messages. */
  userParts: readonly ('text' | 'image' | 'file' | 'audio' | 'video')[];
  /** Kinds of reasoning; `signed` has text and signature, `encrypted` has no text. */
  reasoning: readonly ('plain' | 'signed' | 'encrypted' | 'summary')[];
  origins: readonly ReasoningOrigin[];
  /** Whether the format separates reasoning, text, refusal and calls by kind (true) or lets them mix. */
  sortedParts: boolean;
  refusals: boolean;
  /** Whether tool results may hold images, be marked as errors, or share a message. */
  resultImages: boolean;
  resultErrors: boolean;
  groupedResults: boolean;
  names: boolean;
  cacheMarks: boolean;
  settings: readonly (keyof Settings)[];
  outputs: readonly OutputFormat['type'][];
  reasoningSettings: readonly ('effort' | 'budget' | 'enabled' | 'adaptive' | 'exclude' | 'summary')[];
  severalChoices: boolean;
  strict: boolean;
}

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 24 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('北京 🌤 é', ' \n\n  ', '{"a":1}', '</think>', 'data: [DONE]\n\n', '"\\u0000"'),
  },
);
const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,11}$/);
const base64 = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const argumentTexts = fc.oneof(
  fc.constantFrom('{}', '{"id":7203685477580700123,"f":1.0,"e":1e400}', '{ "spaced" : [ 1 ] }', '{"k":"\\u00e9\\n"}'),
  // Bodies with such a key are rejected before they reach a format.
  fc
    .dictionary(word, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((value) => JSON.stringify(value))
    .filter((text) => !text.includes('__proto__')),
);

/** An object whose members are all optional. */
function partial<T extends object>(members: { [K in keyof T]: Arbitrary<T[K]> }): Arbitrary<Partial<T>> {
  return fc.record(members, { requiredKeys: [] }) as Arbitrary<Partial<T>>;
}

function cacheMark(abilities: Abilities) {
  return abilities.cacheMarks
    ? fc.oneof(
        { weight: 5, arbitrary: fc.constant({}) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(
            { cache: {} },
            { cache: { ttl: '5m' as const } },
            { cache: { ttl: '1h' as const } },
          ),
        },
      )
    : fc.constant({});
}

function source(mediaType: string, extension: string): Arbitrary<Source> {
  return fc.oneof(
    base64.map((data): Source => ({ kind: 'bytes', mediaType, data })),
    word.map((name): Source => ({ kind: 'url', url: `https://example.com/${name}.${extension}` })),
  );
}

function userPart(abilities: Abilities): Arbitrary<Part> {
  const kinds: Record<Abilities['userParts'][number], Arbitrary<Part>> = {
    text: text.map((written): Part => ({ type: 'text', text: written })),
    image: source('image/png', 'png').map((from): Part => ({ type: 'image', source: from })),
    file: fc
      .tuple(source('application/pdf', 'pdf'), word)
      .map(([from, name]): Part => ({ type: 'file', source: from, filename: `${name}.pdf` })),
    audio: base64.map(
      (data): Part => ({ type: 'audio', source: { kind: 'bytes', mediaType: 'audio/wav', data }, format: 'wav' }),
    ),
    video: source('video/mp4', 'mp4').map((from): Part => ({ type: 'video', source: from })),
  };
  const kind = fc.oneof(...abilities.userParts.map((name) => kinds[name]));
  return fc.tuple(kind, cacheMark(abilities)).map(([part, mark]) => ({ ...part, ...mark }) as Part);
}

function reasoningPart(abilities: Abilities): Arbitrary<ReasoningPart> {
  const origin = fc.constantFrom(...abilities.origins);
  const kinds: Record<Abilities['reasoning'][number], Arbitrary<ReasoningPart>> = {
    plain: text.map((written) => ({ type: 'reasoning', text: written, origin: 'unknown' })),
    signed: fc
      .tuple(fc.oneof(text, fc.constant('')), base64, origin)
      .map(([written, signature, from]) => ({ type: 'reasoning', text: written, signature, origin: from })),
    encrypted: fc
      .tuple(base64, origin)
      .map(([encrypted, from]) => ({ type: 'reasoning', text: '', encrypted, origin: from })),
    summary: fc.tuple(text, base64, word, origin).map(([written, encrypted, id, from]) => ({
      type: 'reasoning',
      text: written,
      summary: true,
      encrypted,
      id,
      origin: from,
    })),
  };
  return fc.oneof(...abilities.reasoning.map((name) => kinds[name]));
}

/** Parts of one assistant message; call ids are unique across turns (`turn` numbers the turn). */
function assistantParts(abilities: Abilities, turn: number): Arbitrary<Part[]> {
  const calls = fc.array(fc.tuple(word, argumentTexts), { maxLength: 3 }).map((list) =>
    list.map(
      ([name, written], index): ToolCallPart => ({
        type: 'toolCall',
        id: `call_${turn}_${index}`,
        name,
        arguments: written,
      }),
    ),
  );
  const thinks: Arbitrary<Part[]> =
    abilities.reasoning.length === 0
      ? fc.constant<Part[]>([])
      : fc.array<Part>(reasoningPart(abilities), { maxLength: 3 });
  const texts = fc
    .array(fc.tuple(text, cacheMark(abilities)), { maxLength: 2 })
    .map((list) => list.map(([written, mark]): Part => ({ type: 'text', text: written, ...mark })));
  const refusal: Arbitrary<Part[]> = abilities.refusals
    ? fc.oneof(
        fc.constant<Part[]>([]),
        text.map((written): Part[] => [{ type: 'refusal', text: written }]),
      )
    : fc.constant<Part[]>([]);
  const all = fc.tuple(thinks, texts, refusal, calls).map(([first, second, third, last]) => ({
    parts: [...first, ...second, ...third],
    last,
  }));
  if (abilities.sortedParts) return all.map(({ parts, last }): Part[] => [...parts, ...last]);
  return all.chain(({ parts, last }) =>
    fc.shuffledSubarray(parts, { minLength: parts.length }).map((shuffled): Part[] => [...shuffled, ...last]),
  );
}

function results(abilities: Abilities, calls: readonly ToolCallPart[]): Arbitrary<Message[]> {
  const image = fc.array(
    source('image/png', 'png').map((from): Part => ({ type: 'image', source: from })),
    { maxLength: 1 },
  );
  const one = fc.record({
    texts: fc.array(text, { maxLength: 2 }),
    images: abilities.resultImages ? image : fc.constant([]),
    mark: cacheMark(abilities),
    failed: abilities.resultErrors ? fc.constantFrom({}, { isError: true }) : fc.constant({}),
  });
  return fc.tuple(...calls.map(() => one)).map((list) => {
    const parts = list.map(({ texts, images, mark, failed }, index): Part => {
      const inner: Part[] = [...texts.map((written): Part => ({ type: 'text', text: written })), ...images];
      // A cache mark needs a part to carry it.
      return { type: 'toolResult', callId: calls[index]!.id, parts: inner, ...failed, ...(inner.length > 0 && mark) };
    });
    if (abilities.groupedResults) return parts.length === 0 ? [] : [{ role: 'tool', parts }];
    return parts.map((part): Message => ({ role: 'tool', parts: [part] }));
  });
}

/** One round: the user message, the assistant message and the results of its calls. */
export function arbitraryRound(abilities: Abilities, turn: number): Arbitrary<Message[]> {
  const name = abilities.names
    ? fc.oneof(
        fc.constant({}),
        word.map((given) => ({ name: given })),
      )
    : fc.constant({});
  const user = fc
    .tuple(fc.array(userPart(abilities), { minLength: 1, maxLength: 3 }), name)
    .map(([parts, named]): Message => ({ role: 'user', parts, ...named }));
  return fc.tuple(user, assistantParts(abilities, turn)).chain(([asks, parts]) => {
    const answers: Message[] = parts.length === 0 ? [] : [{ role: 'assistant', parts }];
    const calls = parts.filter((part) => part.type === 'toolCall');
    return results(abilities, calls).map((told) => [asks, ...answers, ...told]);
  });
}

function tool(abilities: Abilities): Arbitrary<FunctionTool> {
  const schema = fc.constantFrom<unknown>(
    { type: 'object', properties: {} },
    { type: 'object', properties: { a: { type: 'number' } } },
  );
  return fc
    .tuple(
      fc.record({ type: fc.constant('function' as const), name: word, parameters: schema }),
      partial<{ description: string; strict: boolean }>({
        description: text,
        ...(abilities.strict && { strict: fc.boolean() }),
      } as { description: Arbitrary<string>; strict: Arbitrary<boolean> }),
      cacheMark(abilities),
    )
    .map(([known, more, mark]) => ({ ...known, ...more, ...mark }));
}

const SETTINGS: { [K in keyof Settings]-?: Arbitrary<Settings[K]> } = {
  maxOutputTokens: fc.integer({ min: 2_000, max: 30_000 }),
  temperature: fc.constantFrom(0, 0.3, 1),
  topP: fc.constantFrom(0.1, 1),
  topK: fc.integer({ min: 1, max: 100 }),
  topA: fc.constantFrom(0.2),
  minP: fc.constantFrom(0.05),
  frequencyPenalty: fc.constantFrom(-2, 0.5),
  presencePenalty: fc.constantFrom(-0.5, 2),
  repetitionPenalty: fc.constantFrom(1.1),
  seed: fc.integer(),
  stop: fc.array(text, { minLength: 1, maxLength: 4 }),
  logprobs: fc.constant(true),
  topLogprobs: fc.integer({ min: 0, max: 20 }),
  logitBias: fc.constantFrom({ '50256': -100 }),
  parallelToolCalls: fc.boolean(),
  serviceTier: fc.constantFrom('auto', 'priority'),
  verbosity: fc.constantFrom('low', 'high'),
  prediction: text.map((content) => ({ type: 'content', content })),
  promptCacheKey: word,
};

const OUTPUTS: Record<OutputFormat['type'], Arbitrary<OutputFormat>> = {
  text: fc.constant({ type: 'text' }),
  json: fc.constant({ type: 'json' }),
  schema: word.map(
    (name): OutputFormat => ({
      type: 'schema',
      name,
      schema: { type: 'object', properties: { [name]: { type: 'string' } }, additionalProperties: false },
    }),
  ),
  grammar: text.map((grammar): OutputFormat => ({ type: 'grammar', grammar })),
  python: fc.constant({ type: 'python' }),
};

function reasoningSettings(abilities: Abilities): Arbitrary<ReasoningSettings> {
  const kinds: Record<Abilities['reasoningSettings'][number], Arbitrary<ReasoningSettings>> = {
    effort: fc.constantFrom(...EFFORTS).map((effort) => ({ effort })),
    budget: fc.integer({ min: 1_024, max: 1_999 }).map((budgetTokens) => ({ budgetTokens })),
    enabled: fc.boolean().map((enabled) => ({ enabled })),
    adaptive: fc.constant({ adaptive: true }),
    exclude: fc.constantFrom<ReasoningSettings>({ effort: 'low', exclude: true }, { exclude: false }),
    summary: fc.constantFrom<ReasoningSettings>({ effort: 'high', summary: 'auto' }, { summary: 'detailed' }),
  };
  return fc.oneof(...abilities.reasoningSettings.map((name) => kinds[name]));
}

/** Everything except the messages. */
function surroundings(abilities: Abilities): Arbitrary<Partial<Conversation>> {
  const settings = partial(
    Object.fromEntries(abilities.settings.map((key) => [key, SETTINGS[key]])) as typeof SETTINGS,
  );
  const tools = fc
    .uniqueArray(tool(abilities), { minLength: 1, maxLength: 3, selector: ({ name }) => name })
    .chain((list) =>
      fc
        .constantFrom<ToolChoice | undefined>(
          undefined,
          { mode: 'auto' },
          { mode: 'none' },
          { mode: 'required' },
          { mode: 'tool', name: list[0]!.name },
        )
        .map((toolChoice): Partial<Conversation> => ({ tools: list, ...(toolChoice !== undefined && { toolChoice }) })),
    );
  return fc
    .tuple(
      settings,
      fc.oneof(fc.constant({}), tools),
      abilities.reasoningSettings.length === 0
        ? fc.constant({})
        : fc.oneof(
            fc.constant({}),
            reasoningSettings(abilities).map((reasoning) => ({ reasoning })),
          ),
      abilities.outputs.length === 0
        ? fc.constant({})
        : fc.oneof(
            fc.constant({}),
            fc.oneof(...abilities.outputs.map((type) => OUTPUTS[type])).map((output) => ({ output })),
          ),
      abilities.severalChoices ? fc.constantFrom({}, { choices: 2 }) : fc.constant({}),
      abilities.cacheMarks ? fc.constantFrom({}, { cache: { ttl: '1h' as const } }) : fc.constant({}),
      fc.oneof(
        fc.constant({}),
        text.map((note) => ({ extras: { [abilities.format]: { x_unknown_field: note } } })),
      ),
    )
    .map(([known, withTools, ...more]) => {
      const kept: Settings = { ...known };
      // `parallelToolCalls` only applies when there are tools.
      if (!('tools' in withTools)) delete kept.parallelToolCalls;
      return Object.assign({ settings: kept }, withTools, ...more) as Partial<Conversation>;
    });
}

/** A conversation of one to four rounds. */
export function arbitraryConversation(abilities: Abilities): Arbitrary<Conversation> {
  const leading = fc
    .tuple(
      fc.constantFrom(...abilities.instructions),
      fc.array(fc.tuple(text, cacheMark(abilities)), { minLength: 1, maxLength: 2 }),
    )
    .map(
      ([role, texts]): Message => ({
        role,
        parts: texts.map(([written, mark]): Part => ({ type: 'text', text: written, ...mark })),
      }),
    );
  const rounds = fc
    .integer({ min: 1, max: 4 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, turn) => arbitraryRound(abilities, turn))));
  return fc
    .tuple(fc.array(leading, { maxLength: 1 }), rounds, surroundings(abilities))
    .map(([first, more, around]) => ({ settings: {}, ...around, messages: [...first, ...more.flat()] }));
}

function arbitraryUsage(abilities: Abilities): Arbitrary<Usage> {
  const tokens = fc.integer({ min: 0, max: 100_000 });
  return fc
    .record({
      input: tokens,
      cacheRead: tokens,
      cacheWrite5m: tokens,
      output: fc.integer({ min: 1, max: 100_000 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ share, ...counts }) => ({
      ...counts,
      cacheWrite1h: 0,
      reasoning: abilities.reasoning.length === 0 ? 0 : Math.floor(counts.output * share),
    }));
}

/** A complete answer whose finish reason matches its parts. */
export function arbitraryTurn(abilities: Abilities): Arbitrary<Turn> {
  const choice = assistantParts({ ...abilities, cacheMarks: false }, 0).chain((parts): Arbitrary<Choice> => {
    const words: FinishReason[] = parts.some((part) => part.type === 'toolCall')
      ? ['tool_calls', 'length']
      : ['stop', 'length', 'content_filter'];
    return fc.constantFrom(...words).map((unified) => ({ parts, finish: { unified, native: unified } }));
  });
  const most = abilities.severalChoices ? 2 : 1;
  return fc
    .tuple(
      fc.array(choice, { minLength: 1, maxLength: most }),
      arbitraryUsage(abilities),
      fc.integer({ min: 1, max: 2_000_000_000 }),
    )
    .map(([choices, usage, created]) => ({ id: 'answer-1', model: 'some/model', created, choices, usage }));
}
