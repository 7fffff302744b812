/** `svc:subagent`: the model hands a task to another model, which works on it with server tools of its own. */
import type { FormatId } from '../../../formats/conversation/conversation.ts';
import { type Fields, textOf, textOrUndefined } from '../../../formats/conversation/fields.ts';
import type { SuspendedCall } from '../../../formats/conversation/suspended.ts';
import { textOfReply, textOfResponse } from '../../nested-reply.ts';
import { Members } from '../../tool-settings.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { type RequestedTool, type ServerTool, ToolError, type ToolOutcome } from '../tool.ts';
import { bodyWith, type Inherits, inheritedFunctions, itemsThatCall, readInherits } from './inherited.ts';
import {
  type AskSettings,
  askedModel,
  functionNameOf,
  LONGEST_PROMPT,
  modelParameter,
  readAskSettings,
  requireKnown,
} from './settings.ts';

const MAX_TOOL_CALLS = 25;
const LONGEST_TASK_NAME = 200;
/** It makes several turns and calls of tools, each of which has a limit of its own. */
const TIMES_A_CALL = 5;

const INSTRUCTIONS =
  'You work on a task that another language model has given you. Nobody answers questions: decide for yourself. Reply with ' +
  'the result of the task, complete and without an introduction.';

export const subagent: ServerTool = {
  name: 'svc:subagent',
  named: 'name',
  nestsTools: ['svc:subagent'],
  check: (settings, path, _shownName, format) => void read(settings, path, format),
  begin(settings, path, { catalog }) {
    const known = read(settings, path);
    requireKnown(known.model, `${path}.model`, catalog());
    return new Subagent(known);
  },
};

interface SubagentSettings extends AskSettings {
  /** Server tools, as its request declares them. */
  tools: unknown[];
  toolCalls: number;
  /** Functions of the client. */
  inherits: Inherits | undefined;
}

/** @param format of the request; those that do not take a setting have refused it before */
function read(settings: Fields, path: string, format: FormatId = 'responses'): SubagentSettings {
  const members = new Members(settings, path);
  const { tools } = settings;
  return {
    ...readAskSettings(settings, path),
    tools: Array.isArray(tools) ? tools : [],
    toolCalls: members.count('max_tool_calls', MAX_TOOL_CALLS) ?? MAX_TOOL_CALLS,
    inherits: readInherits(settings, path, format),
  };
}

interface Inheriting {
  input: Fields;
  running: ToolsRunning;
  functions: readonly Fields[];
  suspended: SuspendedCall | undefined;
}

class Subagent implements RequestedTool {
  readonly functionName: string;
  readonly description: string;
  readonly parameters: Fields;
  readonly timesLimit = TIMES_A_CALL;
  readonly suspends: string;
  readonly #settings: SubagentSettings;

  constructor(settings: SubagentSettings) {
    this.#settings = settings;
    const { name, tools, inherits } = settings;
    this.suspends = name ?? '';
    this.functionName = functionNameOf('subagent', name);
    this.description =
      `Gives a task to another agent${name === undefined ? '' : ` (${name})`}, which works on it alone and returns the ` +
      `result. It reads only the description, which must contain all it needs. It has ${toolsFor(tools.length)}${inherits === undefined ? '' : functionsFor(inherits)}.`;
    const properties = {
      task_name: { type: 'string', description: 'A short name of the task', maxLength: LONGEST_TASK_NAME },
      task_description: { type: 'string', description: 'The whole task', maxLength: LONGEST_PROMPT },
      ...modelParameter(settings),
    };
    const required = ['task_name', 'task_description'];
    this.parameters = { type: 'object', properties, required, additionalProperties: false };
  }

  async run(input: Fields, running: ToolsRunning, suspended?: SuspendedCall): Promise<ToolOutcome> {
    const task = textOf(input['task_description']).trim();
    if (task === '') throw new ToolError('the task description is empty');
    const { inherits } = this.#settings;
    const functions = inherits === undefined ? [] : inheritedFunctions(inherits, running.request.document);
    const inheriting = functions.length > 0 || suspended !== undefined;
    const reply = inheriting
      ? await this.#askInheriting(task, { input, running, functions, suspended })
      : await this.#ask(task, input, running);
    const item = this.#itemOf(input, textOrUndefined(reply['model']));
    const waits = inheriting ? itemsThatCall(reply) : undefined;
    if (waits !== undefined) return { result: '', item, waits };
    const outcome = inheriting ? textOfResponse(reply) : textOfReply(reply);
    if (outcome.trim() === '') throw new ToolError('the subagent gave no result');
    return { result: outcome, item: { ...item, outcome } };
  }

  #ask(task: string, input: Fields, running: ToolsRunning): Promise<Fields> {
    const { options, instructions = INSTRUCTIONS, tools, toolCalls } = this.#settings;
    const model = askedModel(this.#settings, input, running);
    return running.ask(
      {
        ...options,
        ...(model !== undefined && { model }),
        ...(tools.length > 0 && { tools, max_tool_calls: toolCalls }),
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content: task },
        ],
      },
      running.signal,
    );
  }

  #askInheriting(task: string, { input, running, functions, suspended }: Inheriting): Promise<Fields> {
    const { instructions = INSTRUCTIONS } = this.#settings;
    const model = askedModel(this.#settings, input, running);
    const body = bodyWith({ ...this.#settings, model, instructions, task, functions, suspended });
    return running.ask(body, running.signal, 'responses');
  }

  failure(error: string, input: Fields): Pick<ToolOutcome, 'item' | 'block'> {
    return { item: { ...this.#itemOf(input, this.#settings.model ?? textOrUndefined(input['model'])), error } };
  }

  #itemOf(input: Fields, model: string | undefined): Fields {
    const { name } = this.#settings;
    return {
      task_name: textOf(input['task_name']),
      task_description: textOf(input['task_description']),
      ...(model !== undefined && { model }),
      ...(name !== undefined && { instance_name: name }),
    };
  }
}

function toolsFor(count: number): string {
  if (count === 0) return 'no tools';
  return count === 1 ? 'one tool' : `${count} tools`;
}

function functionsFor(inherits: Inherits): string {
  return inherits === 'all' ? ', and your functions' : `, and those of your functions: ${[...inherits].join(', ')}`;
}
