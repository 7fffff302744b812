/** The results of a batch as a stream, a page of rows at a time. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Exchange } from '../../http/operation.ts';
import type { Database } from '../../storage/database.ts';
import { type Batch, batchReply } from '../batch.ts';
import { resultsAfter, type StoredResult } from '../items.sql.ts';
import { resultJson } from './result.ts';

const PAGE = { count: 200, bytes: 1024 * 1024 };

/** The JSON of one result. */
type Render = (batchId: string, result: StoredResult) => Buffer;

async function* resultsOf(
  database: Database,
  batchId: string,
  after = -1,
  render: Render = resultJson,
): AsyncGenerator<Buffer[]> {
  for (let last = after; ; ) {
    const page = await resultsAfter(database, batchId, last, PAGE);
    if (page.length === 0) return;
    yield page.map((result) => render(batchId, result));
    last = page.at(-1)!.position;
  }
}

/** One result per line, in the order of the requests. @param after a position; -1 for all */
export async function* resultLines(
  database: Database,
  batchId: string,
  after = -1,
  render: Render = resultJson,
): AsyncGenerator<Buffer> {
  const end = Buffer.from('\n');
  for await (const page of resultsOf(database, batchId, after, render))
    yield Buffer.concat(page.flatMap((result) => [result, end]));
}

/** The reply of the batch with its results. */
export async function* batchWithResults(database: Database, batch: Batch): AsyncGenerator<Buffer> {
  const comma = Buffer.from(',');
  let before = Buffer.from(`${JSON.stringify(batchReply(batch)).slice(0, -1)},"results":[`);
  let after = Buffer.concat([before, END]);
  for await (const page of resultsOf(database, batch.id)) {
    yield Buffer.concat(page.flatMap((result, at) => [at === 0 ? before : comma, result]));
    before = comma;
    after = END;
  }
  yield after;
}

const END = Buffer.from(']}');

/**
 * Begins once there is a first piece, so that a failure before it is an error with a status.
 * @param type of the content
 */
export async function sendStream(
  { response }: Pick<Exchange, 'response'>,
  type: string,
  content: AsyncGenerator<Buffer>,
): Promise<void> {
  const first = await content.next();
  response.writeHead(200, { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
  if (response.req.method === 'HEAD') {
    await content.return(undefined);
    response.end();
    return;
  }
  await pipeline(Readable.from(continued(first, content)), response);
}

async function* continued(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
