/**
 * The vectors of a file that is being added. Each request for vectors is paid, so what it has made is stored until the file is
 * complete: a process that continues after another one has died, or after a failure, makes the rest only.
 */
import { createHash } from 'node:crypto';
import type { Database } from '../storage/database.ts';
import { keepPiece, piecesOf } from './pieces.sql.ts';
import type { StoreKey } from './sealed.ts';
import { joinPacked, packVectors } from './vectors.ts';

/** Texts of one request for vectors: no service takes fewer. */
const EMBEDDED_AT_ONCE = 96;
const EMBEDDED_BYTES = 320 * 1024;
const DIGEST_BYTES = 32;

interface Making {
  database: Database;
  key: StoreKey;
  entryId: string;
  /** One paid request. Rejects with GatewayError. */
  embed(texts: readonly string[]): Promise<readonly Float32Array[]>;
}

/** Packed, of all texts in order; undefined if the model's vectors do not fit together. */
export async function vectorsOf(
  texts: readonly string[],
  { database, key, entryId, embed }: Making,
): Promise<Buffer | undefined> {
  const kept = await piecesOf(database, entryId);
  const pieces: Buffer[] = [];
  for (const [first, some] of requestsOf(texts)) {
    const column = `piece ${first}`;
    const digest = createHash('sha256').update(JSON.stringify(some)).digest();
    const sealed = kept.get(first);
    const piece = sealed && key.open(entryId, column, sealed);
    if (piece?.subarray(0, DIGEST_BYTES).equals(digest) === true) {
      pieces.push(piece.subarray(DIGEST_BYTES));
      continue;
    }
    const vectors = await embed(some);
    if (vectors.length !== some.length || vectors.some(({ length }) => length !== vectors[0]!.length)) return undefined;
    const packed = packVectors(vectors);
    await keepPiece(database, entryId, { first, sealed: key.seal(entryId, column, Buffer.concat([digest, packed])) });
    pieces.push(packed);
  }
  return joinPacked(pieces);
}

/** The texts of each request, with the position of its first. */
function* requestsOf(texts: readonly string[]): Generator<[number, readonly string[]]> {
  let first = 0;
  while (first < texts.length) {
    let [end, bytes] = [first, 0];
    while (end < texts.length && end - first < EMBEDDED_AT_ONCE) {
      bytes += Buffer.byteLength(texts[end]!);
      if (bytes > EMBEDDED_BYTES && end > first) break;
      end += 1;
    }
    yield [first, texts.slice(first, end)];
    first = end;
  }
}
