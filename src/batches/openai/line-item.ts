/** A line of an input file as an item of a batch, and what is wrong with it. */
import { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, readDocument } from '../../base/json.ts';
import { OPEN_BRACE } from '../../base/json-characters.ts';
import type { BatchEndpoint } from '../batch.ts';
import { hasCustomIdLength, type ItemForm, MAX_CUSTOM_ID, type SubmittedItem } from '../submission/submitted-item.ts';

/** As a batch shows it, in `errors`. */
export interface InputError {
  code: string;
  /** From 1; null if the error is not that of a line. */
  line: number | null;
  message: string;
  param: string | null;
}

const LONGEST_MESSAGE = 1_000;

/** An error of an input file. */
export class RefusedInput extends GatewayError {
  readonly shown: InputError;

  constructor({ message, ...shown }: InputError) {
    super('invalid_request', message);
    this.shown = { ...shown, message: message.slice(0, LONGEST_MESSAGE).toWellFormed().replaceAll('\0', '') };
  }
}

const MEMBERS = new Set(['custom_id', 'method', 'url', 'body']);

/** Lines `{custom_id, method, url, body}` of a batch for this endpoint. The item at position 0 is line 1. */
export function lineItems(endpoint: BatchEndpoint): ItemForm {
  const name = (position: number) => `line ${position + 1}`;
  return {
    name,
    read: (bytes, position) => readLine(bytes, position + 1, endpoint),
    explain(error, position, customId) {
      const { path } = error.details;
      return new RefusedInput({
        code: error.type === 'not_found' && path === 'model' ? 'model_not_found' : error.type,
        line: position + 1,
        message: `${name(position)} (custom_id ${JSON.stringify(customId)}): body: ${error.message}`,
        param: path === undefined || path === '' ? 'body' : `body.${path}`,
      });
    },
    repeated(position, customId, first) {
      const message = `${name(position)}: custom_id ${JSON.stringify(customId)} is also that of ${name(first)}`;
      return new RefusedInput({ code: 'duplicate_custom_id', line: position + 1, message, param: 'custom_id' });
    },
  };
}

/** @throws RefusedInput */
function readLine(bytes: Buffer, line: number, endpoint: BatchEndpoint): SubmittedItem {
  let customId: unknown;
  const refused = (code: string, param: string | null, problem: string) => {
    const of = typeof customId === 'string' && hasCustomIdLength(customId);
    const name = of ? `line ${line} (custom_id ${JSON.stringify(customId)})` : `line ${line}`;
    return new RefusedInput({ code, line, message: `${name}: ${param === null ? '' : `${param} `}${problem}`, param });
  };
  let document: JsonDocument;
  try {
    document = readDocument(bytes);
  } catch (error) {
    throw error instanceof GatewayError ? refused('invalid_json_line', null, error.message) : error;
  }
  customId = document.member('custom_id');
  const missing = [...MEMBERS].find((member) => document.member(member) === undefined);
  if (missing !== undefined) throw refused('missing_required_parameter', missing, 'is missing');
  if (typeof customId !== 'string' || !hasCustomIdLength(customId)) {
    throw refused('invalid_request', 'custom_id', `must be a text of 1 to ${MAX_CUSTOM_ID} characters`);
  }
  if (customId.includes('\0') || !customId.isWellFormed()) {
    throw refused('invalid_request', 'custom_id', 'must not contain U+0000 or half surrogate pairs');
  }
  const other = document.members.find(({ key }) => !MEMBERS.has(key));
  if (other) throw refused('invalid_request', other.key.slice(0, 100), 'is not a member of a request');
  if (document.member('method') !== 'POST') throw refused('invalid_method', 'method', 'must be POST');
  if (document.member('url') !== endpoint) {
    throw refused('url_mismatch', 'url', `must be ${endpoint}, the endpoint of the batch`);
  }
  const body = document.members.find(({ key }) => key === 'body')!;
  if (bytes[body.valueStart] !== OPEN_BRACE) throw refused('invalid_request', 'body', 'must be an object');
  return { customId, body: bytes.subarray(body.valueStart, body.valueEnd) };
}
