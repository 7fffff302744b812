/** A conversation with an intern: what was said and asked, as its entries, and how events of the chat add to them. */

/** The tool call that asks; the answer repeats it. */
export interface Call {
  id: string;
  function: { name: string; arguments: string };
}

export interface FieldAsked {
  name: string;
  /** `string`, `number`, `integer`, `boolean` or `array`. */
  type: string;
  required: boolean;
  options?: readonly string[];
}

type Asked =
  | { kind: 'permission'; operation: string | null; options: readonly string[] }
  | { kind: 'elicitation'; message: string; fields: readonly FieldAsked[] };

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

export interface Said {
  kind: 'intern';
  text: string;
  reasoning: string;
  model: string | undefined;
  state: 'running' | 'done' | 'stopped';
  error: string | undefined;
  usage: Usage | undefined;
}

export interface Question {
  kind: 'question';
  call: Call;
  asked: Asked;
  /** As it was sent; undefined while it is open. */
  answer: string | undefined;
}

/** `steered`: it was added to a turn that ran. */
export type Entry = { kind: 'user'; text: string; steered: boolean } | Said | Question;

export type Event =
  | { type: 'prompted'; text: string }
  | { type: 'steered'; text: string }
  | { type: 'answered'; call: string; answer: string }
  | { type: 'said'; text: string; reasoning: string; model: string | undefined }
  | { type: 'asked'; call: Call }
  | { type: 'ended'; state: 'done' | 'stopped'; error?: string | undefined; usage?: Usage | undefined };

const NOTHING_SAID: Said = {
  kind: 'intern',
  text: '',
  reasoning: '',
  model: undefined,
  state: 'running',
  error: undefined,
  usage: undefined,
};

export function added(entries: readonly Entry[], event: Event): readonly Entry[] {
  switch (event.type) {
    case 'prompted':
      return [...entries, { kind: 'user', text: event.text, steered: false }, NOTHING_SAID];
    case 'steered':
      // What follows is shown below the message.
      return [...saidLast(entries, { state: 'done' }), { kind: 'user', text: event.text, steered: true }, NOTHING_SAID];
    case 'answered':
      return [
        ...entries.map((entry) =>
          entry.kind === 'question' && entry.call.id === event.call ? { ...entry, answer: event.answer } : entry,
        ),
        NOTHING_SAID,
      ];
    case 'said': {
      const last = entries.findLast((entry) => entry.kind === 'intern');
      if (last === undefined) return entries;
      const { text, reasoning, model = last.model } = event;
      return saidLast(entries, { text: last.text + text, reasoning: last.reasoning + reasoning, model });
    }
    case 'asked':
      return [...saidLast(entries, { state: 'done' }), questionOf(event.call)];
    case 'ended':
      return saidLast(entries, { state: event.state, error: event.error, usage: event.usage });
  }
}

function saidLast(entries: readonly Entry[], changes: Partial<Said>): readonly Entry[] {
  const at = entries.findLastIndex(({ kind }) => kind === 'intern');
  return entries.map((entry, place) => (place === at ? { ...(entry as Said), ...changes } : entry));
}

/** A question that is not understood can only be cancelled. */
function questionOf(call: Call): Question {
  let asked: Asked = { kind: 'permission', operation: call.function.arguments, options: [] };
  try {
    const given = JSON.parse(call.function.arguments) as Asked;
    if (given.kind === 'permission' && Array.isArray(given.options)) asked = given;
    if (given.kind === 'elicitation' && Array.isArray(given.fields)) asked = given;
  } catch {
    // Shown as it is.
  }
  return { kind: 'question', call, asked, answer: undefined };
}

/** The question that waits for an answer. */
export function openQuestion(entries: readonly Entry[]): Question | undefined {
  const last = entries.at(-1);
  return last?.kind === 'question' && last.answer === undefined ? last : undefined;
}
