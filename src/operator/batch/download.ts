/**
 * Downloads the results of a batch. Only whole lines are written, so a download that was cut, or whose process was killed,
 * continues after the last one.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type Clock, sleep } from '../../base/clock.ts';
import { ConnectionLost, type GatewayApi } from './gateway-api.ts';
import { BatchProblem, EXIT } from './problem.ts';

const LINE_FEED = 0x0a;
const LONGEST_ID = 100;
/** Without a new line in between. */
const MOST_CUTS = 8;
const LONGEST_PAUSE_MS = 30_000;

export interface Download {
  api: GatewayApi;
  clock: Clock;
  batchId: string;
  /** After each piece. @param lines so far */
  advanced(lines: number): void;
  /** Before the download continues. */
  cut(problem: ConnectionLost): void;
}

/** Writes to `file.partial` and renames it at the end. */
export async function downloadTo(file: string, download: Download): Promise<void> {
  const partial = `${file}.partial`;
  try {
    const handle = await open(partial, 'a+', 0o600);
    try {
      const had = await wholeLines(partial, download.batchId);
      await handle.truncate(had.bytes);
      await transfer(download, (lines) => handle.appendFile(lines), had);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(partial, file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === undefined ? error : new BatchProblem(`${file} cannot be written (${code})`, EXIT.wrongInput);
  }
}

/** @param write resolves when more may be written */
export function downloadThrough(write: (lines: Buffer) => Promise<void>, download: Download): Promise<void> {
  return transfer(download, write, { lines: 0, last: undefined });
}

/** Whether the file may be made here; leaves nothing. @throws BatchProblem */
export async function checkWritable(file: string): Promise<void> {
  let handle: FileHandle | undefined;
  const partial = `${file}.partial`;
  try {
    handle = await open(partial, 'a', 0o600);
    const { size } = await handle.stat();
    if (size === 0) await rm(partial);
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new BatchProblem(`${file} cannot be written (${code})`, EXIT.wrongInput);
  } finally {
    await handle?.close();
  }
}

interface Had {
  lines: number;
  /** The id of the last result. */
  last: string | undefined;
}

async function transfer(
  { api, clock, batchId, advanced, cut }: Download,
  write: (lines: Buffer) => Promise<void>,
  had: Had,
): Promise<void> {
  let { lines, last } = had;
  for (let cuts = 0; ; ) {
    const query = last === undefined ? '' : `?after=${encodeURIComponent(last)}`;
    let rest: Buffer[] = [];
    try {
      for await (const chunk of await api.stream(`/batches/${batchId}/results${query}`)) {
        const end = chunk.lastIndexOf(LINE_FEED) + 1;
        if (end === 0) {
          rest.push(chunk);
          continue;
        }
        const whole = Buffer.concat([...rest, chunk.subarray(0, end)]);
        rest = [chunk.subarray(end)];
        await write(whole);
        last = idOf(whole.subarray(whole.lastIndexOf(LINE_FEED, -2) + 1));
        for (const byte of whole) if (byte === LINE_FEED) lines += 1;
        cuts = 0;
        advanced(lines);
      }
      return;
    } catch (error) {
      cuts += 1;
      if (!(error instanceof ConnectionLost) || cuts === MOST_CUTS) throw error;
      cut(error);
      await sleep(clock, Math.min(LONGEST_PAUSE_MS, 500 * 2 ** cuts));
    }
  }
}

/** The results at the begin of a file: of this batch, from the first on, without a gap. What follows is not of a download. */
async function wholeLines(file: string, batchId: string): Promise<Had & { bytes: number }> {
  const had = { lines: 0, last: undefined as string | undefined, bytes: 0 };
  /** The begin of the line that is being read. */
  let reading: Buffer = Buffer.alloc(0);
  let at = 0;
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      const id = idOf(begun(reading, chunk.subarray(from, end)));
      if (id !== `${batchId}_${had.lines}`) return had;
      reading = Buffer.alloc(0);
      from = end + 1;
      had.lines += 1;
      had.last = id;
      had.bytes = at + from;
    }
    reading = begun(reading, chunk.subarray(from));
    at += chunk.length;
  }
  return had;
}

function begun(head: Buffer, more: Buffer): Buffer {
  return head.length >= LONGEST_ID ? head : Buffer.concat([head, more.subarray(0, LONGEST_ID)]);
}

/** The gateway writes it first. */
function idOf(line: Buffer): string | undefined {
  return /^\{"id":"([^"]+)"/.exec(line.subarray(0, LONGEST_ID).toString('latin1'))?.[1];
}
