/** The body of a request for the vectors of texts, and the vectors in its reply. */
import { GatewayError } from '../base/errors.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../formats/conversation/fields.ts';

export function embeddingBody(model: string, texts: readonly string[]): Fields {
  return { model, input: texts, encoding_format: 'base64' };
}

/** The vectors of a reply, in the order of the texts. @throws GatewayError 502 */
export function vectorsIn(reply: Fields, count: number): Float32Array[] {
  const vectors: Float32Array[] = [];
  for (const entry of listOf(reply['data'])) {
    const { index, embedding: encoded } = fieldsOf(entry);
    vectors[Number(index)] = floatsIn(encoded);
  }
  if (vectors.length === count && Array.from(vectors).every((vector) => vector !== undefined && vector.length > 0))
    return vectors;
  throw new GatewayError('provider_unavailable', 'the embedding model did not return a vector for each text');
}

function floatsIn(encoded: unknown): Float32Array {
  if (Array.isArray(encoded)) return Float32Array.from(encoded as number[]);
  const bytes = Buffer.from(textOf(encoded), 'base64');
  return Float32Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => bytes.readFloatLE(index * 4));
}
