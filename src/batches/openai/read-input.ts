/**
 * Reads the input file of a batch in the background: checks its lines and stores them as items. A process that dies
 * leaves the items that it has stored; the next one reads the file from its beginning and finds them there.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Blobs } from '../../blobs/index.ts';
import { findFile } from '../../files/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { type Batch, nextState } from '../batch.ts';
import type { ItemTarget } from '../item.ts';
import { deleteItems } from '../items.sql.ts';
import type { RunParts } from '../running/run.ts';
import * as store from '../store.ts';
import { IntakeEnded, type IntakeParts, ItemIntake } from '../submission/item-intake.ts';
import { findBatchFiles, markRefused } from './files.sql.ts';
import { type InputError, lineItems, RefusedInput } from './line-item.ts';
import { isBlank, type Line, Lines } from './lines.ts';

export interface ReadParts extends IntakeParts, Pick<RunParts, 'callerOfKey'> {
  blobs: Blobs;
}

/** Further errors are not looked for. */
const MOST_ERRORS = 20;
/** At the end of a file. */
const MOST_BLANK = 1_000;
/** After so many failures to read a file that is there, its batch fails. */
const MOST_ATTEMPTS = 5;

interface Reading {
  signal: AbortSignal;
  /** From 1. */
  attempt: number;
  /** Says that the items may begin when `tx` commits. */
  announce(tx: Queryable, id: string): Promise<void>;
}

export async function readInput(parts: ReadParts, id: string, reading: Reading): Promise<void> {
  const { database } = parts;
  const batch = await store.findBatch(database, id);
  const files = (await findBatchFiles(database, [id])).get(id);
  if (batch === undefined || files === undefined || !(await store.isArriving(database, id))) return;
  try {
    const items = await readItems(parts, batch, files.inputFileId, reading);
    await accept(parts, batch, items, reading);
  } catch (error) {
    if (error instanceof IntakeEnded) return;
    const errors = errorsOf(error, reading);
    if (errors === undefined) throw error;
    await refuse(parts, id, errors);
  }
}

async function readItems(
  parts: ReadParts,
  batch: Batch,
  inputFileId: string,
  { signal }: Reading,
): Promise<ItemIntake> {
  const caller = await parts.callerOfKey(batch.keyHash);
  const reader = new InputReader(new ItemIntake(parts, batch.id, caller, lineItems(batch.endpoint)), batch, parts);
  const { blobId } = await existingFile(parts, batch, inputFileId);
  try {
    for await (const chunk of await parts.blobs.read(blobId)) {
      signal.throwIfAborted();
      await reader.read(chunk);
    }
  } catch (error) {
    // Its bytes may go soon after the file.
    if (!(error instanceof RefusedLines)) await existingFile(parts, batch, inputFileId);
    throw error;
  }
  return reader.end();
}

async function existingFile({ database, clock }: ReadParts, { workspaceId }: Batch, id: string) {
  const file = await findFile(database, workspaceId, id, new Date(clock.now()));
  if (file !== undefined) return file;
  const message = 'the input file was deleted, or has expired, before it was validated';
  throw new RefusedInput({ code: 'not_found', line: null, message, param: 'input_file_id' });
}

/** An input file with errors. */
class RefusedLines extends Error {
  readonly errors: readonly InputError[];

  constructor(errors: readonly InputError[]) {
    super('the input file has errors');
    this.errors = errors;
  }
}

class InputReader {
  readonly #items: ItemIntake;
  readonly #target: ItemTarget;
  readonly #itemBytes: number;
  readonly #lines: Lines;
  readonly #errors: InputError[] = [];
  /** The first of the blank lines before the current one; only the end of a file may have some. */
  #blank: number | undefined;

  constructor(items: ItemIntake, target: ItemTarget, { itemBytes }: IntakeParts) {
    this.#items = items;
    this.#target = target;
    this.#itemBytes = itemBytes;
    this.#lines = new Lines(itemBytes);
  }

  async read(chunk: Buffer): Promise<void> {
    for (const line of this.#lines.read(chunk)) await this.#take(line);
  }

  async end(): Promise<ItemIntake> {
    for (const line of this.#lines.end()) await this.#take(line);
    await this.#collect(() => this.#items.store());
    if (this.#errors.length === 0 && this.#items.total === 0) this.#stop('empty_file', null, 'the input file is empty');
    if (this.#errors.length === 0) await this.#collect(() => this.#items.checkTogether(this.#target));
    if (this.#errors.length > 0) throw new RefusedLines(this.#errors);
    return this.#items;
  }

  async #take({ number, bytes }: Line): Promise<void> {
    if (bytes === undefined) {
      return this.#stop('invalid_json_line', number, `line ${number} is larger than ${this.#itemBytes} bytes`);
    }
    if (isBlank(bytes)) {
      this.#blank ??= number;
      if (number - this.#blank < MOST_BLANK) return;
    }
    if (this.#blank !== undefined) this.#stop('invalid_json_line', this.#blank, `line ${this.#blank} is blank`);
    await this.#collect(() => this.#items.add(bytes, this.#target));
  }

  async #collect(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RefusedInput)) throw error;
      this.#errors.push(error.shown);
      if (this.#errors.length === MOST_ERRORS) throw new RefusedLines(this.#errors);
    }
  }

  #stop(code: string, line: number | null, message: string): never {
    throw new RefusedLines([...this.#errors, { code, line, message, param: null }]);
  }
}

/** Undefined if the file may be readable later. */
function errorsOf(error: unknown, { signal, attempt }: Reading): readonly InputError[] | undefined {
  if (error instanceof RefusedLines) return error.errors;
  if (error instanceof RefusedInput) return [error.shown];
  if (error instanceof GatewayError && error.status < 500) {
    const { type, message, details } = error;
    const of = type === 'authentication' ? 'the key of the batch: ' : '';
    return [{ code: type, line: null, message: of + message, param: details.path ?? null }];
  }
  const mayPass = error instanceof GatewayError && error.status === 503;
  if (mayPass || signal.aborted || attempt < MOST_ATTEMPTS) return undefined;
  return [{ code: 'server', line: null, message: 'the input file could not be read', param: 'input_file_id' }];
}

function accept(
  { database }: ReadParts,
  { id }: Batch,
  { total, models }: ItemIntake,
  { announce }: Reading,
): Promise<void> {
  return database.transaction(async (tx) => {
    const batch = await store.findBatch(tx, id, true);
    if (batch === undefined || !(await store.endIntake(tx, id))) return;
    await store.setItems(tx, id, { total, model: models.length === 1 ? models[0]! : null });
    await announce(tx, id);
  });
}

function refuse({ database, clock }: ReadParts, id: string, errors: readonly InputError[]): Promise<void> {
  return database.transaction(async (tx) => {
    const batch = await store.findBatch(tx, id, true);
    if (batch === undefined || !(await store.endIntake(tx, id))) return;
    await deleteItems(tx, id);
    const at = new Date(clock.now());
    const state = nextState(batch.state, batch.state === 'cancelling' ? 'stopped' : 'unrunnable')!;
    await store.changeState(tx, id, { state, at, error: errors[0]!.message });
    await markRefused(tx, id, errors, at);
  });
}
