/** What a preset sets, as its form shows it: members with a field of their own, and all others as JSON. */
import type { ApiPresetEnvelope, ApiPresetVersion } from '../api.gen.ts';
import { ApiError, type ApiName, api } from '../api.ts';
import type { FormatName } from '../playground/conversation.ts';
import { inWorkspace } from '../ui/workspace-choice.tsx';

const MAX_TOKENS: Readonly<Record<FormatName, string>> = {
  chat: 'max_tokens',
  messages: 'max_tokens',
  responses: 'max_output_tokens',
};

/** Operations whose replies change with a preset. */
export const PRESET_READS: readonly ApiName[] = ['GET /presets', 'GET /presets/{slug}', 'GET /presets/{slug}/versions'];

export interface PresetSettings {
  format: FormatName;
  model: string;
  system: string;
  /** Empty: not set. */
  temperature: string;
  maxTokens: string;
  /** JSON of an object, or empty. */
  more: string;
}

export const NO_SETTINGS: PresetSettings = {
  format: 'chat',
  model: '',
  system: '',
  temperature: '',
  maxTokens: '',
  more: '',
};

export function settingsOf({ format, config, system_prompt }: ApiPresetVersion): PresetSettings {
  const name = MAX_TOKENS[format as FormatName];
  const { model, temperature, [name]: maxTokens, ...more } = config;
  return {
    format: format as FormatName,
    model: text(model),
    system: system_prompt ?? '',
    temperature: text(temperature),
    maxTokens: text(maxTokens),
    more: Object.keys(more).length === 0 ? '' : JSON.stringify(more, null, 2),
  };
}

/** Makes the settings the next version of the preset. Rejects if `more` is not JSON of an object. */
export async function savePreset(
  slug: string,
  workspace: string,
  settings: PresetSettings,
): Promise<ApiPresetEnvelope> {
  const { format, model, system, temperature, maxTokens } = settings;
  const config = {
    ...moreOf(settings.more),
    ...(model.trim() !== '' && { model: model.trim() }),
    ...(temperature !== '' && { temperature: Number(temperature) }),
    ...(maxTokens !== '' && { [MAX_TOKENS[format]]: Number(maxTokens) }),
  };
  const call = { path: { slug }, query: inWorkspace(workspace) };
  const hasSystem = system.trim() !== '';
  switch (format) {
    case 'chat': {
      const messages = hasSystem && { messages: [{ role: 'system' as const, content: system }] };
      return api('POST /presets/{slug}/chat/completions', { ...call, body: { ...config, ...messages } });
    }
    case 'messages':
      return api('POST /presets/{slug}/messages', { ...call, body: { ...config, ...(hasSystem && { system }) } });
    case 'responses':
      return api('POST /presets/{slug}/responses', {
        ...call,
        body: { ...config, ...(hasSystem && { instructions: system }) },
      });
  }
}

function moreOf(json: string): Record<string, unknown> {
  if (json.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new ApiError(0, `More settings: ${(error as Error).message}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ApiError(0, 'More settings must be a JSON object, such as {"seed": 7}.');
}

function text(value: unknown): string {
  return value === undefined ? '' : String(value);
}
