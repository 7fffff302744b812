/** One item as a client submits it: an object with a `custom_id` and a request. */
import { hasAtMost } from '../../base/characters.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { type JsonDocument, readDocument } from '../../base/json.ts';
import { OPEN_BRACE } from '../../base/json-characters.ts';
import { storable } from '../../base/storable.ts';

export interface SubmittedItem {
  customId: string;
  /** The request as the client wrote it. */
  body: Buffer;
}

/** How an API writes items, and names them in errors. */
export interface ItemForm {
  /** The item at a position (from 0), in messages and paths: `requests[3]`. */
  name(position: number): string;
  /** Reads an item. @throws GatewayError 400 that names it */
  read(bytes: Buffer, position: number): SubmittedItem;
  /** The same error with the item and its custom_id in message and path. */
  explain(error: GatewayError, position: number, customId: string): GatewayError;
  /** The error of an item whose custom_id is also that of an earlier one; default: one that names both. */
  repeated?(position: number, customId: string, first: number): GatewayError;
}

export const MAX_CUSTOM_ID = 256;

/** Items of `POST /batches`: `{custom_id, body}`. */
export const svcItems: ItemForm = {
  name: (position) => `requests[${position}]`,
  read: (bytes, position) => readItem(bytes, svcItems.name(position), 'body'),
  explain(error, position, customId) {
    const path = svcItems.name(position);
    return renamed(error, `${path} (custom_id ${JSON.stringify(customId)})`, `${path}.body`);
  },
};

/**
 * Reads `{custom_id, <member>}`.
 * @param name of the item, for errors
 * @throws GatewayError 400
 */
export function readItem(bytes: Buffer, name: string, member: string): SubmittedItem {
  const document = readItemObject(bytes, name);
  const customId = document.member('custom_id');
  if (typeof customId !== 'string' || !hasCustomIdLength(customId)) {
    throw invalidField(`${name}.custom_id`, `must be a text of 1 to ${MAX_CUSTOM_ID} characters`);
  }
  storable(`${name}.custom_id`, customId);
  const other = document.members.find(({ key }) => key !== 'custom_id' && key !== member);
  if (other) throw invalidField(`${name}.${other.key.slice(0, 100)}`, 'is not a member of a request');
  const body = document.members.find(({ key }) => key === member);
  if (body === undefined || bytes[body.valueStart] !== OPEN_BRACE) {
    throw invalidField(`${name}.${member}`, `must be an object (custom_id ${JSON.stringify(customId)})`);
  }
  return { customId, body: bytes.subarray(body.valueStart, body.valueEnd) };
}

/** Counts characters, not UTF-16 units. */
export function hasCustomIdLength(text: string): boolean {
  return text !== '' && hasAtMost(text, MAX_CUSTOM_ID);
}

/** @throws GatewayError 400 that names the item */
function readItemObject(bytes: Buffer, name: string): JsonDocument {
  try {
    return readDocument(bytes);
  } catch (error) {
    throw error instanceof GatewayError ? renamed(error, name, name) : error;
  }
}

function renamed(error: GatewayError, item: string, within: string): GatewayError {
  const { path } = error.details;
  return new GatewayError(error.type, `${item}: ${error.message}`, {
    ...error.details,
    path: path === undefined || path === '' ? within : `${within}.${path}`,
  });
}
