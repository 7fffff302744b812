/** Settings of tools that ask other models: which model, and how it is asked. */
import { invalidField } from '../../../base/errors.ts';
import type { Catalog } from '../../../catalog/index.ts';
import { type Fields, isFields, textOrUndefined } from '../../../formats/conversation/fields.ts';
import { isRouterModel } from '../../plugins/index.ts';
import { Members } from '../../tool-settings.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { ToolError } from '../tool.ts';

const EFFORTS = ['max', 'xhigh', 'high', 'medium', 'low', 'minimal', 'none'];
const NAME = /^[a-zA-Z0-9 _-]{1,64}$/;
/** Of the function: upstreams allow 64 characters, and `svc_` may come before it. */
const LONGEST_FUNCTION_NAME = 54;
const LONGEST_MODEL = 256;
const LONGEST_INSTRUCTIONS = 100_000;
export const LONGEST_PROMPT = 100_000;
const MOST_TOKENS = 1_000_000;

export interface AskSettings {
  /** Absent: the call may choose one. */
  model: string | undefined;
  /** Distinguishes several tools of a kind in one request. */
  name: string | undefined;
  instructions: string | undefined;
  /** Members of each request: reasoning, output cap, temperature. */
  options: Fields;
}

/** @throws GatewayError 400 with the path of a member that is not valid */
export function readAskSettings(settings: Fields, path: string): AskSettings {
  const members = new Members(settings, path);
  const name = textOrUndefined(settings['name'] ?? undefined);
  if ((settings['name'] ?? undefined) !== undefined && !NAME.test(name ?? '')) {
    throw invalidField(`${path}.name`, 'must be 1 to 64 letters, digits, spaces, underscores or hyphens');
  }
  const options: Fields = {
    reasoning: reasoningOf(settings['reasoning'] ?? undefined, `${path}.reasoning`),
    max_completion_tokens: members.count('max_completion_tokens', MOST_TOKENS),
    temperature: members.number('temperature', 0, 2),
  };
  return {
    model: members.text('model', LONGEST_MODEL),
    name,
    instructions: members.text('instructions', LONGEST_INSTRUCTIONS),
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

/** `advisor`, or `advisor_<name>`. */
export function functionNameOf(kind: string, name: string | undefined): string {
  return name === undefined ? kind : `${kind}_${name.replaceAll(' ', '_')}`.slice(0, LONGEST_FUNCTION_NAME);
}

/** @throws GatewayError 400 for a model that does not exist */
export function requireKnown(model: string | undefined, path: string, catalog: Catalog): void {
  if (model !== undefined && !isKnown(model, catalog)) throw invalidField(path, unknown(model));
}

/** Names with the suffix `:online` are not: tools are chosen by their own settings. */
function isKnown(name: string, catalog: Catalog): boolean {
  return catalog.find(name) !== undefined || isRouterModel(name);
}

const unknown = (model: string) => `${JSON.stringify(model.slice(0, 200))} is not a known model`;

/** The settings' model, else the call's, else that of the request; undefined for the workspace's default model. */
export function askedModel(
  settings: Pick<AskSettings, 'model'>,
  input: Fields,
  { request: { facts }, parts }: ToolsRunning,
): string | undefined {
  if (settings.model !== undefined) return settings.model;
  const chosen = textOrUndefined(input['model']);
  if (chosen === undefined || chosen === '') return facts.model ?? facts.fallbackModels[0];
  if (!isKnown(chosen, parts.catalog())) throw new ToolError(unknown(chosen));
  return chosen;
}

/** The parameter by which a call chooses the model, unless the settings do. */
export function modelParameter({ model }: Pick<AskSettings, 'model'>): Fields {
  if (model !== undefined) return {};
  return { model: { type: 'string', description: 'The model to ask; your own by default', maxLength: LONGEST_MODEL } };
}
