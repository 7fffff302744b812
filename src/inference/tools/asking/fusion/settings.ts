/** The settings of `svc:fusion`. */
import { invalidField } from '../../../../base/errors.ts';
import { type Fields, isFields } from '../../../../formats/conversation/fields.ts';
import { Members } from '../../../tool-settings.ts';
import { readAskSettings } from '../settings.ts';

const MAX_MODELS = 8;
const MAX_TOOLS = 8;
const MAX_TOOL_CALLS = 16;
const DEFAULT_TOOL_CALLS = 4;
const DEFAULT_TOKENS = 16_000;
const LONGEST_MODEL = 256;

export interface FusionSettings {
  /** The panel; undefined: a panel of the gateway's choice. */
  models: readonly string[] | undefined;
  /** The analyst; undefined: the model that asks. */
  analyst: string | undefined;
  /** Server tools of the panel; undefined: the usual ones. */
  tools: readonly unknown[] | undefined;
  toolCalls: number;
  maxTokens: number;
  /** Members of requests to the panel. */
  options: Fields;
  /** A cache mark for the question. */
  cache: Fields | undefined;
}

/** @throws GatewayError 400 with the path of a member that is not valid */
export function readFusionSettings(settings: Fields, path: string): FusionSettings {
  const members = new Members(settings, path);
  const { model, options } = readAskSettings({ ...settings, name: undefined }, path);
  const { max_completion_tokens: tokens = DEFAULT_TOKENS, ...others } = options;
  const { cache_control: cache } = settings;
  return {
    models: modelsOf(settings['analysis_models'] ?? undefined, `${path}.analysis_models`),
    analyst: model,
    tools: toolsOf(settings['tools'] ?? undefined, `${path}.tools`),
    toolCalls: members.count('max_tool_calls', MAX_TOOL_CALLS) ?? DEFAULT_TOOL_CALLS,
    maxTokens: tokens as number,
    options: others,
    cache: isFields(cache) ? cache : undefined,
  };
}

function modelsOf(models: unknown, path: string): readonly string[] | undefined {
  if (models === undefined) return undefined;
  if (!Array.isArray(models) || models.length === 0 || models.length > MAX_MODELS) {
    throw invalidField(path, `must be a list of 1 to ${MAX_MODELS} models`);
  }
  models.forEach((model, index) => {
    if (typeof model !== 'string' || model === '' || model.length > LONGEST_MODEL) {
      throw invalidField(`${path}[${index}]`, 'must be the name of a model');
    }
  });
  return models as string[];
}

function toolsOf(tools: unknown, path: string): readonly unknown[] | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools) || tools.length > MAX_TOOLS) {
    throw invalidField(path, `must be a list of at most ${MAX_TOOLS} server tools`);
  }
  return tools;
}
