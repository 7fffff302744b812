/** Reads journal segments. A torn or damaged line is counted and skipped; all other records of the file are found. */
import { type FileHandle, open } from 'node:fs/promises';
import { type RecordKind, unframe } from './record.ts';

export interface ScannedRecord {
  kind: RecordKind;
  json: string;
}

interface ScannedChunk {
  records: ScannedRecord[];
  /** Offset after the last complete line of this chunk. */
  end: number;
  /** Lines of this chunk that are not intact records. */
  damaged: number;
}

const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 10;

/** Yields the records between two offsets of a segment, in order, one chunk at a time. */
export async function* scanSegment(path: string, from = 0, to = Number.MAX_SAFE_INTEGER): AsyncGenerator<ScannedChunk> {
  const file = await open(path, 'r');
  try {
    yield* scan(file, from, to);
  } finally {
    await file.close();
  }
}

async function* scan(file: FileHandle, from: number, to: number): AsyncGenerator<ScannedChunk> {
  let rest: Buffer = Buffer.alloc(0);
  let position = from;
  while (position < to) {
    const wanted = Math.min(CHUNK_BYTES, to - position);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    const bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
    const chunk: ScannedChunk = { records: [], end: 0, damaged: 0 };
    let lineStart = 0;
    for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, lineStart)) {
      take(chunk, bytes.toString('utf8', lineStart, at));
      lineStart = at + 1;
    }
    rest = bytes.subarray(lineStart);
    chunk.end = position - rest.length;
    yield chunk;
  }
  if (rest.length > 0) yield { records: [], end: position - rest.length, damaged: 1 };
}

function take(chunk: ScannedChunk, line: string): void {
  const record = unframe(line);
  if (record === undefined) chunk.damaged += 1;
  else chunk.records.push(record);
}
