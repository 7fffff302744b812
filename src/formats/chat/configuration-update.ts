/**
 * `configuration_update` of system and developer messages: the reasoning effort from this message on. What counts for a request
 * is the last one, so the gateway replaces the effort of the request by it and removes the members.
 */
import { invalidField } from '../../base/errors.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits, type Edit } from '../../base/json-edits.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf } from '../conversation/fields.ts';

const MEMBER = 'configuration_update';
const ROLES: readonly unknown[] = ['system', 'developer'];

/** @throws GatewayError 400 with the path of a member in a message of another role */
export function checkUpdate(message: Fields, path: string): void {
  if (!isUpdate(message) || ROLES.includes(message['role'])) return;
  throw invalidField(`${path}.${MEMBER}`, 'belongs in a system or developer message');
}

/** The checked request with its current effort and without the members. Undefined if it has none, the usual case. */
export function settled(document: JsonDocument): JsonDocument | undefined {
  const last = listOf(document.structure['messages']).findLast((message) => isUpdate(fieldsOf(message)));
  if (last === undefined) return undefined;
  const messages = listOf(document.exact['messages']).flatMap((value) => {
    const { [MEMBER]: update, ...message } = fieldsOf(value);
    if (update === undefined || update === null) return [value];
    return isEmpty(message['content']) ? [] : [message];
  });
  const { max_tokens: _, enabled: __, ...reasoning } = fieldsOf(document.member('reasoning'));
  const edits: Edit[] = [
    { key: 'messages', json: stringifyJson(messages) },
    { key: 'reasoning', json: stringifyJson({ ...reasoning, effort: effortIn(fieldsOf(last)) }) },
    { key: 'reasoning_effort', json: undefined },
  ];
  return readDocument(applyEdits(document, edits));
}

function isUpdate(message: Fields): boolean {
  return message[MEMBER] !== undefined && message[MEMBER] !== null;
}

function effortIn(message: Fields): unknown {
  return fieldsOrUndefined(fieldsOrUndefined(message[MEMBER])?.['reasoning'])?.['effort'];
}

function isEmpty(content: unknown): boolean {
  return content === '' || (Array.isArray(content) && content.length === 0);
}
