/** Gateways whose provider has a batch interface, for tests. */
import type { TestContext } from 'node:test';
import { type GatewayOptions, PRICING, type ProviderOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { BatchVendor, type Json } from '../../src/testing/upstream/batch-vendor.ts';
import { AWS_KEYS, BEDROCK_ROLE } from '../../src/testing/upstream/bedrock-batches.ts';
import { serviceAccount } from '../../src/testing/upstream/service-account.ts';

export type Kind = ConstructorParameters<typeof BatchVendor>[0];

/** A vendor and a gateway that uses it as `test/native`, with the fallback `test/native` of another provider if wanted. */
export async function startNative(
  t: TestContext,
  kind: Kind,
  options: GatewayOptions & { provider?: object; model?: Record<string, unknown> } = {},
) {
  const vendor = await startVendor(t, kind);
  const { provider, model, ...rest } = options;
  const usual = providerOf(vendor, kind);
  const gateway = await startGateway(t, {
    ...rest,
    providers: { native: { ...usual, ...provider, model: { ...usual.model, ...model } }, ...rest.providers },
  });
  return { vendor, gateway };
}

export async function startVendor(t: Pick<TestContext, 'after'>, kind: Kind): Promise<BatchVendor> {
  const vendor = await new BatchVendor(kind).listen();
  t.after(() => vendor.close());
  return vendor;
}

export function providerOf(vendor: BatchVendor, kind: Kind): ProviderOptions {
  return {
    kind,
    base_url: kind === 'google' ? `${vendor.url}/v1beta` : vendor.url,
    // Deployments of a batch type have to be asked for.
    ...(kind === 'azure' && { batches: true }),
    ...settings(vendor)[kind],
  };
}

/** What the configuration of some kinds needs. */
export function settings({ url }: BatchVendor): Partial<Record<Kind, ProviderOptions>> {
  return {
    xai: { model: { upstream_id: 'grok-4.3' } },
    bedrock: {
      ...{ api_key: JSON.stringify(AWS_KEYS), region: 'eu-central-1', batch_minimum: '1', batch_role: BEDROCK_ROLE },
      ...{ batch_bucket: 's3://calls/of/tests', batch_bucket_url: url },
    },
    vertex: {
      ...{ api_key: serviceAccount(), project: 'cloud-project', location: 'us-east5', sign_in_url: url },
      ...{ batch_bucket: 'gs://calls', batch_bucket_url: url },
    },
  };
}

/** The answer of a chat model: the text of the last message, and as many tokens as a test can compute. */
export function chatAnswer({ body }: { body: Json }) {
  const text = textOf(body.messages.at(-1).content);
  return {
    status: 200,
    body: {
      id: `chatcmpl-${text}`,
      object: 'chat.completion',
      created: 1,
      model: body.model,
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: `re: ${text}` } }],
      usage: { prompt_tokens: 10 + text.length, completion_tokens: 5, total_tokens: 15 + text.length },
    },
  };
}

export function messageAnswer({ body }: { body: Json }) {
  const text = textOf(body.messages.at(-1).content);
  return {
    status: 200,
    body: {
      ...{ id: `msg_${text}`, type: 'message', role: 'assistant', model: body.model },
      content: [{ type: 'text', text: `re: ${text}` }],
      ...{ stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 10 + text.length, output_tokens: 5, service_tier: 'batch' },
    },
  };
}

export function geminiAnswer({ body }: { body: Json }) {
  const text = textOf(body.contents.at(-1).parts);
  return {
    status: 200,
    body: {
      candidates: [{ content: { role: 'model', parts: [{ text: `re: ${text}` }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 10 + text.length, candidatesTokenCount: 5, totalTokenCount: 15 + text.length },
      modelVersion: 'm',
    },
  };
}

export function converseAnswer({ body }: { body: Json }) {
  const text = textOf(body.messages.at(-1).content);
  return {
    status: 200,
    body: {
      output: { message: { role: 'assistant', content: [{ text: `re: ${text}` }] } },
      ...{ stopReason: 'end_turn', metrics: { latencyMs: 1 } },
      usage: { inputTokens: 10 + text.length, outputTokens: 5, totalTokens: 15 + text.length },
    },
  };
}

/** What each kind answers. */
export const answers = {
  ...{ openai: chatAnswer, azure: chatAnswer, groq: chatAnswer, mistral: chatAnswer, together: chatAnswer },
  ...{ anthropic: messageAnswer, google: geminiAnswer, vertex: geminiAnswer },
  ...{ bedrock: converseAnswer, xai: chatAnswer },
};

function textOf(content: Json): string {
  return typeof content === 'string' ? content : content.map(({ text }: Json) => text).join('');
}

export const item = (customId: string, text = customId, more: object = {}) => ({
  custom_id: customId,
  body: { max_tokens: 20, messages: [{ role: 'user', content: text }], ...more },
});

export const nativeBatch = (requests: readonly unknown[], more: object = {}) => ({
  endpoint: '/v1/chat/completions',
  model: 'test/native',
  requests,
  ...more,
});

/** The cost of `chatAnswer` and those like it at half the list price, in USD, or another share of it. */
export function halfCost(texts: readonly string[], percent = 50): number {
  const tokens = texts.reduce((sum, text) => sum + (10 + text.length) * Number(PRICING.prompt), 0);
  return ((tokens + texts.length * 5 * Number(PRICING.completion)) * percent) / 100;
}
