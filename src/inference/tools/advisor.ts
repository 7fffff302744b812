/** `svc:advisor`: the model asks another model, which answers from the prompt, or from the whole conversation and the prompt. */
import { invalidField } from '../../base/errors.ts';
import type { Catalog } from '../../catalog/index.ts';
import type { Conversation, Part } from '../../formats/conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../../formats/conversation/fields.ts';
import { isRouterModel } from '../plugins/index.ts';
import { Members } from '../tool-settings.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { type RequestedTool, type ServerTool, ToolError, type ToolOutcome } from './tool.ts';

const EFFORTS = ['max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none'];
const NAME = /^[a-zA-Z0-9 _-]{1,64}$/;
/** Of the function: `advisor_` and the name. Upstreams allow 64 characters, and `svc_` may come before it. */
const LONGEST_NAME = 45;
const LONGEST_MODEL = 256;
const LONGEST_INSTRUCTIONS = 100_000;
const LONGEST_PROMPT = 100_000;
const MOST_TOKENS = 1_000_000;

const INSTRUCTIONS =
  'You advise another language model that is working on a task. Answer its question directly and briefly, with the reasons ' +
  'that matter. You cannot call tools.';

export const advisor: ServerTool = {
  name: 'svc:advisor',
  named: true,
  check: (settings, path) => void read(settings, path),
  begin(settings, path, { catalog }) {
    const known = read(settings, path);
    const { model } = known;
    if (model !== undefined && !isKnown(model, catalog())) throw invalidField(`${path}.model`, unknown(model));
    return new Advisor(known);
  },
};

interface AdvisorSettings {
  model: string | undefined;
  name: string | undefined;
  instructions: string;
  /** The advisor reads the whole conversation. */
  forward: boolean;
  /** Members of each request. */
  options: Fields;
}

function read(settings: Fields, path: string): AdvisorSettings {
  const members = new Members(settings, path);
  const name = textOrUndefined(settings['name'] ?? undefined);
  if ((settings['name'] ?? undefined) !== undefined && !NAME.test(name ?? '')) {
    throw invalidField(`${path}.name`, 'must be 1 to 64 letters, digits, spaces, underscores or hyphens');
  }
  if (members.flag('stream') === true) throw invalidField(`${path}.stream`, 'is not supported by this gateway');
  const options: Fields = {
    reasoning: reasoningOf(settings['reasoning'] ?? undefined, `${path}.reasoning`),
    max_completion_tokens: members.count('max_completion_tokens', MOST_TOKENS),
    temperature: members.number('temperature', 0, 2),
  };
  return {
    model: members.text('model', LONGEST_MODEL),
    name,
    instructions: members.text('instructions', LONGEST_INSTRUCTIONS) ?? INSTRUCTIONS,
    forward: members.flag('forward_transcript') ?? false,
    options: Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
}

function reasoningOf(reasoning: unknown, path: string): Fields | undefined {
  if (reasoning === undefined) return undefined;
  if (!isFields(reasoning)) throw invalidField(path, 'must be an object');
  const members = new Members(reasoning, path);
  const effort = members.word('effort', EFFORTS);
  const tokens = members.count('max_tokens', MOST_TOKENS);
  if (effort !== undefined && tokens !== undefined) {
    throw invalidField(`${path}.max_tokens`, 'cannot be combined with effort');
  }
  if (effort !== undefined) return { effort };
  return tokens === undefined ? undefined : { max_tokens: tokens };
}

/** Names with the suffix `:online` are not: an advisor has no tools. */
function isKnown(name: string, catalog: Catalog): boolean {
  return catalog.find(name) !== undefined || isRouterModel(name);
}

const unknown = (model: string) => `${JSON.stringify(model.slice(0, 200))} is not a known model`;

class Advisor implements RequestedTool {
  readonly functionName: string;
  readonly description: string;
  readonly parameters: Fields;
  readonly #settings: AdvisorSettings;

  constructor(settings: AdvisorSettings) {
    this.#settings = settings;
    const { name, model, forward } = settings;
    this.functionName = name === undefined ? 'advisor' : `advisor_${name.replaceAll(' ', '_')}`.slice(0, LONGEST_NAME);
    this.description =
      `Asks another language model${name === undefined ? '' : ` (${name})`} for advice. It has no tools. ` +
      (forward ? 'It reads the whole conversation.' : 'It reads only the prompt, which must contain all it needs.');
    const properties = {
      prompt: { type: 'string', description: 'What to ask the advisor', maxLength: LONGEST_PROMPT },
      ...(model === undefined && {
        model: { type: 'string', description: 'The model to ask; your own by default', maxLength: LONGEST_MODEL },
      }),
    };
    this.parameters = { type: 'object', properties, required: ['prompt'], additionalProperties: false };
  }

  async run(input: Fields, running: ToolsRunning): Promise<ToolOutcome> {
    const prompt = textOf(input['prompt']).trim();
    if (prompt === '') throw new ToolError('the prompt is empty');
    const { options, instructions, forward } = this.#settings;
    const model = this.#modelFor(input, running);
    const reply = await running.ask(
      {
        ...options,
        ...(model !== undefined && { model }),
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content: forward ? withTranscript(running.conversation(), prompt) : prompt },
        ],
      },
      running.signal,
    );
    const advice = textOf(fieldsOf(fieldsOf(listOf(reply['choices'])[0])['message'])['content']);
    if (advice.trim() === '') throw new ToolError('the advisor gave no answer');
    return {
      result: advice,
      item: { ...this.#itemOf(prompt, textOrUndefined(reply['model'])), advice },
      block: { type: 'advisor_tool_result', content: { type: 'advisor_result', text: advice } },
    };
  }

  failure(error: string, input: Fields): Pick<ToolOutcome, 'item' | 'block'> {
    const model = this.#settings.model ?? textOrUndefined(input['model']);
    return {
      item: { ...this.#itemOf(textOf(input['prompt']), model), error },
      block: {
        type: 'advisor_tool_result',
        content: { type: 'advisor_tool_result_error', error_code: 'unavailable' },
      },
    };
  }

  /** Undefined for the workspace's default model. */
  #modelFor(input: Fields, { request: { facts }, parts }: ToolsRunning): string | undefined {
    const chosen = textOrUndefined(input['model']);
    if (chosen === undefined || chosen === '') return this.#settings.model ?? facts.model ?? facts.fallbackModels[0];
    if (!isKnown(chosen, parts.catalog())) throw new ToolError(unknown(chosen));
    return chosen;
  }

  #itemOf(prompt: string, model: string | undefined): Fields {
    const { name } = this.#settings;
    return { prompt, ...(model !== undefined && { model }), ...(name !== undefined && { instance_name: name }) };
  }
}

/** As text: a conversation with calls of tools cannot be continued by a model that has none. */
function withTranscript({ messages }: Conversation, prompt: string): string {
  const turns = messages.flatMap(({ role, parts }) => {
    const text = parts.map(written).filter(Boolean).join('\n');
    return text === '' ? [] : `[${role}]\n${text}`;
  });
  return `The conversation so far:\n\n${turns.join('\n\n')}\n\n[end of the conversation]\n\n${prompt}`;
}

function written(part: Part): string {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text;
    case 'toolCall':
      return `(calls ${part.name}: ${part.arguments})`;
    case 'toolResult':
      return part.parts.map(written).filter(Boolean).join('\n');
    case 'image':
    case 'file':
    case 'audio':
    case 'video':
      return `(${part.type})`;
    default:
      return '';
  }
}
