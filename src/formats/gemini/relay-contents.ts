/** The contents of a relayed request without what only the gateway can read. */
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import type { Edit } from '../../base/json-edits.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { NO_SIGNATURE } from './encode-parts.ts';
import { familyOf } from './family.ts';
import { givenName, member } from './names.ts';
import { isSealed } from './thought-seal.ts';

/** No edit, the usual case, when nothing changes. */
export function contentsEdit(document: JsonDocument, { model }: EncodeTarget): Edit[] {
  const { third } = familyOf(model);
  const needsChange = (content: unknown) => isModels(content) && changed(fieldsOf(content), third) !== undefined;
  // Only ASCII members decide, so the undecoded structure suffices.
  if (!listOf(document.structure['contents']).some(needsChange)) return [];
  return [{ key: 'contents', json: stringifyJson(relayedContents(document.exact['contents'], model)) }];
}

/** The contents as a service of the format can read them. */
export function relayedContents(contents: unknown, model: string): unknown[] {
  const { third } = familyOf(model);
  return listOf(contents).flatMap((content) => {
    const parts = isModels(content) ? changed(fieldsOf(content), third) : undefined;
    if (parts === undefined) return [content];
    return parts.length === 0 ? [] : [{ ...fieldsOf(content), parts }];
  });
}

function isModels(content: unknown): boolean {
  return fieldsOf(content)['role'] === 'model';
}

/**
 * The parts without sealed reasoning of other vendors; undefined if there is none. From the third generation on, the
 * first call of a content needs a signature, which calls of other models lack.
 */
function changed({ parts: given }: Fields, third: boolean): Fields[] | undefined {
  let some = false;
  let isFirst = true;
  const parts = (isFields(given) ? [given] : listOf(given)).flatMap((value): Fields[] => {
    const part = fieldsOf(value);
    const isCall = member(part, 'functionCall') !== undefined;
    const key = givenName(part, 'thoughtSignature');
    const sealed = isSealed(part[key]);
    const unsigned = isCall && isFirst && third && (sealed || part[key] === undefined);
    isFirst &&= !isCall;
    if (!sealed && !unsigned) return [part];
    some = true;
    const { [key]: _, ...others } = part;
    if (isCall) return [unsigned ? { ...others, thoughtSignature: NO_SIGNATURE } : others];
    return others['thought'] === true || others['text'] === '' ? [] : [others];
  });
  return some ? parts : undefined;
}
