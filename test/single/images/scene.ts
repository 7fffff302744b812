/** A gateway with the scripted upstream as every image service, and what its tests share. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { startGateway } from '../../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../../src/testing/upstream/upstream.ts';

/** A PNG of 1024 x 1024 as far as its head, in base64. */
export const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  Buffer.from([0, 0, 4, 0, 0, 0, 4, 0, 8, 6, 0, 0, 0]),
  Buffer.alloc(32),
]).toString('base64');
export const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), Buffer.alloc(40)]).toString('base64');

export const TOKENS = { prompt: '0.000005', completion: '0', image_token: '0.00001', image_output: '0.00004' };
export const PIECES = {
  prompt: '0',
  completion: '0',
  output_images: [{ price: '0.04' }, { price: '0.08', variant: '2K' }],
};
const BY_QUALITY = {
  ...PIECES,
  output_images: [{ price: '0.04' }, { price: '0.06', variant: 'high' }, { price: '0.08', variant: 'high 2048x2048' }],
};
export const model = (upstream_id: string, pricing: unknown = PIECES) => ({
  upstream_id,
  pricing,
  input_modalities: ['text', 'image'],
  output_modalities: ['image'],
});

export const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    // Results and references of these tests are on loopback.
    yaml: { egress: { networks: ['127.0.0.0/8'], ports: ['1-65535'] } },
    providers: {
      gpt: { kind: 'openai', model: model('gpt-image-2.5-flare', TOKENS) },
      old: { kind: 'openai', model: model('gpt-image-1.5', TOKENS) },
      dalle: { kind: 'openai', model: model('dall-e-2') },
      xai: { kind: 'xai', model: model('grok-imagine-image') },
      recraft: { kind: 'recraft', model: model('recraftv4_1_vector') },
      stability: { kind: 'stability', model: model('sd3.5-large') },
      flux: {
        kind: 'black-forest-labs',
        model: model('flux-2-pro', {
          prompt: '0',
          completion: '0',
          output_images: [{ per: 'megapixel', price: '0.03' }],
        }),
      },
      fal: { kind: 'fal', model: model('fal-ai/flux/dev') },
      falpair: { kind: 'fal', model: model('fal-ai/flux/dev') },
      imagen: { kind: 'gemini', model: model('imagen-4.0-generate-001') },
      gemini: {
        kind: 'gemini',
        model: model('gemini-3-pro-image', { prompt: '0.000002', completion: '0.000012', image_output: '0.00012' }),
      },
      canvas: { kind: 'bedrock', model: model('amazon.nova-canvas-v1:0', BY_QUALITY) },
      titan: { kind: 'bedrock', model: model('amazon.titan-image-generator-v2:0') },
      sd3: { kind: 'bedrock', model: model('stability.sd3-5-large-v1:0') },
      wordy: { kind: 'bedrock', model: model('meta.llama3-3-70b-instruct-v1:0') },
      azure: { kind: 'azure', model: model('prod-gpt-image-1.5', TOKENS) },
      dated: { kind: 'azure', api_version: '2025-04-01-preview', model: model('pictures', TOKENS) },
      vertexdraw: {
        kind: 'vertex',
        project: 'cloud-project',
        api_key: undefined,
        model: model('google/gemini-3-pro-image', TOKENS),
      },
      vertexgen: {
        kind: 'vertex',
        project: 'cloud-project',
        api_key: undefined,
        location: 'us-central1',
        model: model('imagen-4.0-generate-001'),
      },
      twin: { kind: 'openrouter', model: model('acme/painter') },
      free: { kind: 'openai', model: { upstream_id: 'gpt-image-2', output_modalities: ['image'], pricing: null } },
      text: { kind: 'chat' },
    },
  },
);
export const { upstream } = gateway;

export const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(value)],
});
export const drawn = (...images: string[]) =>
  json({ created: 1750000000, data: images.map((b64_json) => ({ b64_json })) });
export const make = (name: string, members: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  gateway.post('/images', { model: `test/${name}`, prompt: 'Earth', ...members }, headers);
export const sent = (name: string, count = 1) => upstream.requests(name).at(-count)!;

export interface Made {
  created: number;
  data: { b64_json: string; media_type?: string }[];
  usage: Record<string, unknown>;
}
export interface Refused {
  error: { code: number; message: string; metadata: Record<string, unknown> };
}
export async function made(response: Response): Promise<Made> {
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text) as Made;
}
export async function refused(response: Response, status: number, problem: RegExp): Promise<Refused> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  const body = JSON.parse(text) as Refused;
  assert.match(body.error.message, problem);
  return body;
}
export async function row(response: Response): Promise<Record<string, unknown>> {
  const id = response.headers.get('x-generation-id');
  return eventually(async () => {
    const answer = await gateway.get(`/generation?id=${id}`);
    return answer.status === 200 ? ((await answer.json()) as { data: Record<string, unknown> }).data : undefined;
  });
}

export async function eventually<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (const startedAt = performance.now(); performance.now() - startedAt < 20_000; ) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error('it did not come');
}
