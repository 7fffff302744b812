/** Writes the settings of agents as files in their own formats. */
import type { AgentSettings } from '../connection.ts';

/** The gateway as a provider for OpenCode, and the permission mode in which OpenCode asks before it acts. */
export function openCodeConfiguration(model: string, gateway: string, instructions: string | null): string {
  const [ask, server] = ['ask', { tool_call: true, limit: { context: 128_000, output: 32_000 } }];
  return JSON.stringify({
    model: `gatehouse/${model}`,
    small_model: `gatehouse/${model}`,
    // Without it, the agent offers models of its own cloud.
    enabled_providers: ['gatehouse'],
    share: 'disabled',
    autoupdate: false,
    permission: { bash: ask, edit: ask, webfetch: ask },
    ...(instructions === null ? {} : { instructions: ['AGENTS.md'] }),
    provider: {
      gatehouse: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: gateway, apiKey: 'none' },
        models: { [model]: server },
      },
    },
  });
}

/** The gateway as the provider of Codex; its web search and its further agents are off. */
export function codexConfiguration({ model }: AgentSettings, gateway: string): string {
  const quoted = JSON.stringify;
  return [
    ...(model === null ? [] : [`model = ${quoted(model)}`]),
    'model_provider = "gatehouse"',
    'web_search = "disabled"',
    '[features]',
    'multi_agent = false',
    '[model_providers.gatehouse]',
    'name = "gatehouse"',
    `base_url = ${quoted(gateway)}`,
    'env_key = "GATEWAY_KEY"',
    'wire_api = "responses"',
    '',
  ].join('\n');
}
