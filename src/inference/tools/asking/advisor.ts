/** `svc:advisor`: the model asks another model, which answers from the prompt, or from the whole conversation and the prompt. */
import { invalidField } from '../../../base/errors.ts';
import type { Conversation, Part } from '../../../formats/conversation/conversation.ts';
import { type Fields, textOf, textOrUndefined } from '../../../formats/conversation/fields.ts';
import { textOfReply } from '../../nested-reply.ts';
import { Members } from '../../tool-settings.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { type RequestedTool, type ServerTool, ToolError, type ToolOutcome } from '../tool.ts';
import {
  type AskSettings,
  askedModel,
  functionNameOf,
  LONGEST_PROMPT,
  modelParameter,
  readAskSettings,
  requireKnown,
} from './settings.ts';

const INSTRUCTIONS =
  'You advise another language model that is working on a task. Answer its question directly and briefly, with the reasons ' +
  'that matter. You cannot call tools.';

export const advisor: ServerTool = {
  name: 'svc:advisor',
  named: 'name',
  check: (settings, path) => void read(settings, path),
  begin(settings, path, { catalog }) {
    const known = read(settings, path);
    requireKnown(known.model, `${path}.model`, catalog());
    return new Advisor(known);
  },
};

interface AdvisorSettings extends AskSettings {
  /** The advisor reads the whole conversation. */
  forward: boolean;
}

function read(settings: Fields, path: string): AdvisorSettings {
  const members = new Members(settings, path);
  if (members.flag('stream') === true) throw invalidField(`${path}.stream`, 'is not supported by this gateway');
  return { ...readAskSettings(settings, path), forward: members.flag('forward_transcript') ?? false };
}

class Advisor implements RequestedTool {
  readonly functionName: string;
  readonly description: string;
  readonly parameters: Fields;
  readonly #settings: AdvisorSettings;

  constructor(settings: AdvisorSettings) {
    this.#settings = settings;
    const { name, forward } = settings;
    this.functionName = functionNameOf('advisor', name);
    this.description =
      `Asks another language model${name === undefined ? '' : ` (${name})`} for advice. It has no tools. ` +
      (forward ? 'It reads the whole conversation.' : 'It reads only the prompt, which must contain all it needs.');
    const properties = {
      prompt: { type: 'string', description: 'What to ask the advisor', maxLength: LONGEST_PROMPT },
      ...modelParameter(settings),
    };
    this.parameters = { type: 'object', properties, required: ['prompt'], additionalProperties: false };
  }

  async run(input: Fields, running: ToolsRunning): Promise<ToolOutcome> {
    const prompt = textOf(input['prompt']).trim();
    if (prompt === '') throw new ToolError('the prompt is empty');
    const { options, instructions = INSTRUCTIONS, forward } = this.#settings;
    const model = askedModel(this.#settings, input, running);
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
    const advice = textOfReply(reply);
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
