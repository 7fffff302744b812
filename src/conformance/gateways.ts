/** The gateways that the suite knows how to configure, and what a request to each needs. */
import type { FormatName } from './formats/dialogue.ts';

/** The upstreams of the suite. `first` and `second` are both of the chat format and serve one model. */
export type UpstreamName = FormatName | 'fallback';

/** USD per token. Every gateway under test is configured with these prices. */
export const PRICES = { input: 0.000003, cached: 0.0000003, output: 0.000015 } as const;

const UPSTREAM_KEY = 'conformance-upstream-key';
const UPSTREAM_MODELS = {
  chat: 'chat-model',
  messages: 'messages-model',
  responses: 'responses-model',
  first: 'fallback-model',
  second: 'fallback-model',
} as const;

export interface GatewayKind {
  /** The configuration file, to be written as it is. `upstreams` is the URL of the scripted upstreams. */
  config(upstreams: string): string;
  /** Appended to a base URL that has no path. */
  basePath: string;
  models: Readonly<Record<UpstreamName, string>>;
  headers(upstream: UpstreamName, upstreams: string, key: string): Record<string, string>;
  /** Further members of a body. */
  body?(upstream: UpstreamName): Record<string, unknown>;
}

const ONE_NAME: GatewayKind['models'] = {
  ...{ chat: 'conformance/chat', messages: 'conformance/messages', responses: 'conformance/responses' },
  fallback: 'conformance/fallback',
};

/** Clients of the messages format send their key in `x-api-key`. */
const bearer = (_upstream: UpstreamName, _upstreams: string, key: string) => ({
  ...{ authorization: `Bearer ${key}`, 'x-api-key': key, 'anthropic-version': '2023-06-01' },
});

export const GATEWAYS: Readonly<Record<string, GatewayKind>> = {
  gatehouse: {
    config: gatehouseConfig,
    basePath: '/api/v1',
    models: ONE_NAME,
    headers: bearer,
    body: (upstream) =>
      upstream === 'fallback' ? { provider: { order: ['conformance-first', 'conformance-second'] } } : {},
  },
  litellm: {
    config: litellmConfig,
    basePath: '/v1',
    models: ONE_NAME,
    headers: bearer,
  },
  portkey: {
    config: () => '',
    basePath: '/v1',
    models: { ...UPSTREAM_MODELS, fallback: UPSTREAM_MODELS.first },
    headers: portkeyHeaders,
  },
  /** Any other, configured by hand as `config` says. */
  other: { config: instructions, basePath: '', models: ONE_NAME, headers: bearer },
};

function gatehouseConfig(upstreams: string): string {
  const pricing = {
    prompt: decimal(PRICES.input),
    completion: decimal(PRICES.output),
    input_cache_read: decimal(PRICES.cached),
  };
  const provider = (name: keyof typeof UPSTREAM_MODELS, kind: FormatName, model: string) => ({
    ...{ id: `conformance-${name}`, kind, base_url: `${upstreams}/${name}/v1`, api_key: UPSTREAM_KEY },
    models: [
      {
        ...{ id: model, upstream_id: UPSTREAM_MODELS[name], context_length: 1_000_000, pricing },
        input_modalities: ['text', 'image'],
        supported_parameters: ['tools', 'tool_choice', 'temperature', 'stop', 'max_tokens', 'reasoning'],
      },
    ],
  });
  const providers = [
    provider('chat', 'chat', ONE_NAME.chat),
    provider('messages', 'messages', ONE_NAME.messages),
    provider('responses', 'responses', ONE_NAME.responses),
    provider('first', 'chat', ONE_NAME.fallback),
    provider('second', 'chat', ONE_NAME.fallback),
  ];
  // JSON is yaml.
  return `${JSON.stringify({ providers }, null, 2)}\n`;
}

const LITELLM_KEY = 'sk-conformance';

function litellmConfig(upstreams: string): string {
  const entry = (model_name: string, model: string, api_base: string) => ({
    model_name,
    litellm_params: { model, api_base, api_key: UPSTREAM_KEY },
    model_info: {
      ...{ input_cost_per_token: PRICES.input, output_cost_per_token: PRICES.output },
      ...{ cache_read_input_token_cost: PRICES.cached, supports_reasoning: true },
    },
  });
  const config = {
    model_list: [
      entry(ONE_NAME.chat, `openai/${UPSTREAM_MODELS.chat}`, `${upstreams}/chat/v1`),
      entry(ONE_NAME.messages, `anthropic/${UPSTREAM_MODELS.messages}`, `${upstreams}/messages`),
      entry(ONE_NAME.responses, `openai/responses/${UPSTREAM_MODELS.responses}`, `${upstreams}/responses/v1`),
      entry(ONE_NAME.fallback, `openai/${UPSTREAM_MODELS.first}`, `${upstreams}/first/v1`),
      entry('conformance/second', `openai/${UPSTREAM_MODELS.second}`, `${upstreams}/second/v1`),
    ],
    general_settings: { master_key: LITELLM_KEY },
    // The upstream of the chat format has no responses.
    litellm_settings: { use_chat_completions_url_for_anthropic_messages: true },
    // Otherwise the failures of one case would keep the models from the next one.
    router_settings: { fallbacks: [{ [ONE_NAME.fallback]: ['conformance/second'] }], disable_cooldowns: true },
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Portkey's gateway has no file: every request names its provider. */
function portkeyHeaders(upstream: UpstreamName, upstreams: string): Record<string, string> {
  const target = (name: keyof typeof UPSTREAM_MODELS) => ({
    provider: name === 'messages' ? 'anthropic' : 'openai',
    ...{ api_key: UPSTREAM_KEY, custom_host: `${upstreams}/${name}/v1` },
  });
  const config =
    upstream === 'fallback'
      ? { strategy: { mode: 'fallback' }, targets: [target('first'), target('second')] }
      : target(upstream);
  return { 'x-portkey-config': JSON.stringify(config) };
}

function instructions(upstreams: string): string {
  const row = (model: string, name: keyof typeof UPSTREAM_MODELS) =>
    `  ${model.padEnd(22)} ${`${upstreams}/${name}/v1`.padEnd(38)} model ${UPSTREAM_MODELS[name]}, ${
      name === 'first' || name === 'second' ? 'chat' : name
    } format\n`;
  const million = (price: number) => decimal(price * 1e6);
  return [
    'The gateway needs these models, each with the upstream at the right:\n',
    row(ONE_NAME.chat, 'chat'),
    row(ONE_NAME.messages, 'messages'),
    row(ONE_NAME.responses, 'responses'),
    row(ONE_NAME.fallback, 'first'),
    row('', 'second'),
    `  ${ONE_NAME.fallback} asks the first upstream, and the second when the first fails.\n`,
    `  Key of every upstream: ${UPSTREAM_KEY}\n`,
    `  USD per million tokens: input ${million(PRICES.input)}, cached input ${million(PRICES.cached)}, `,
    `output ${million(PRICES.output)}\n`,
  ].join('');
}

/** Without an exponent. */
function decimal(price: number): string {
  return price.toFixed(10).replace(/0+$/, '').replace(/\.$/, '');
}
