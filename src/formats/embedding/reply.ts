/** Encodes the reply of `POST /embeddings`, from vectors or from the upstream's own bytes. */
import Type from 'typebox';
import { stringifyJson } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type Closing, costMembers, type Stamp } from '../conversation/format.ts';
import type { EmbeddingRequest, Encoding } from './request.ts';
import type { ScannedReply } from './scan-reply.ts';
import { type Vector, vectorJson } from './vectors.ts';

/** One vector per input, in input order. */
export interface EmbeddingAnswer {
  vectors: readonly Vector[];
  /** The upstream reply, if it can be returned with only a few members replaced. */
  relay?: { body: Buffer; members: ScannedReply['members']; encoding: Encoding };
}

export function encodeReply(
  { vectors, relay }: EmbeddingAnswer,
  request: EmbeddingRequest,
  stamp: Stamp,
  closing: Closing,
): Buffer | Buffer[] {
  const own = ownMembers(stamp, closing);
  if (relay !== undefined && relay.encoding === request.encoding) return patched(relay.body, relay.members, own);
  const pieces: Buffer[] = [Buffer.from('{"object":"list","data":[')];
  vectors.forEach((vector, index) => {
    const json = vectorJson(vector, request.encoding);
    pieces.push(Buffer.from(`${index > 0 ? ',' : ''}{"object":"embedding","index":${index},"embedding":`));
    pieces.push(typeof json === 'string' ? Buffer.from(json) : json, CLOSE);
  });
  pieces.push(Buffer.from(']'));
  for (const [key, json] of own) if (key !== 'object') pieces.push(Buffer.from(`,"${key}":${json}`));
  pieces.push(CLOSE);
  return Buffer.concat(pieces);
}

const CLOSE = Buffer.from('}');

function ownMembers(stamp: Stamp, { usage, cost, metadata }: Closing): Map<string, string> {
  const own = new Map<string, string>([
    ['object', '"list"'],
    ['id', JSON.stringify(stamp.id)],
    ['model', JSON.stringify(stamp.model)],
  ]);
  if (usage !== undefined) own.set('usage', stringifyJson({ ...usageView(usage), ...costMembers(cost) }));
  if (metadata !== undefined) own.set(metadata.key, stringifyJson(metadata.value));
  return own;
}

/** Details are present only for more than one kind of input. */
function usageView(usage: Usage): Record<string, unknown> {
  const { input, inputImage = 0, inputAudio = 0 } = usage;
  const total = input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
  const text = total - inputImage - inputAudio;
  const kinds = [text, inputImage, inputAudio].filter((count) => count > 0).length;
  return {
    prompt_tokens: total,
    total_tokens: total,
    ...(kinds > 1 && {
      prompt_tokens_details: {
        text_tokens: text,
        ...(inputImage > 0 && { image_tokens: inputImage }),
        ...(inputAudio > 0 && { audio_tokens: inputAudio }),
      },
    }),
  };
}

/** The reply's bytes, without copying, with our members replaced in place or appended. */
function patched(body: Buffer, members: ScannedReply['members'], own: Map<string, string>): Buffer[] {
  const pieces: Buffer[] = [];
  let from = 0;
  let last = 0;
  for (const [key, { start, end }] of members) {
    const json = own.get(key);
    if (json !== undefined) {
      pieces.push(body.subarray(from, start), Buffer.from(json));
      from = end;
      own.delete(key);
    }
    last = end;
  }
  pieces.push(body.subarray(from, last));
  for (const [key, json] of own) pieces.push(Buffer.from(`,${JSON.stringify(key)}:${json}`));
  pieces.push(body.subarray(last));
  return pieces;
}

const Count = Type.Integer({ minimum: 0 });

/** For the OpenAPI document. Open, because further upstream members pass through. */
export const EmbeddingsReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    object: Type.Literal('list'),
    model: Type.String(),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: Count,
        embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
          description: 'Numbers, or base64 of little-endian float32, according to encoding_format',
        }),
      }),
    ),
    usage: Type.Object(
      {
        prompt_tokens: Count,
        total_tokens: Count,
        cost: Type.Optional(Type.Number({ description: 'Absent when the model has no price' })),
        is_byok: Type.Boolean(),
      },
      { additionalProperties: true },
    ),
  },
  { additionalProperties: true, $id: 'Embeddings' },
);
