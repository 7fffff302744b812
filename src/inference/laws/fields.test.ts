/**
 * Every field of a request, from every served format to every spoken one: carried, reported as lost, or the endpoint
 * refused. Fields that are dropped silently are listed in a table with the reason; any other silent loss fails here.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { readDocument } from '../../base/json.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import type { EncodeTarget, ServedFormat } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import { SERVED_FORMATS, SPOKEN_FORMATS, spokenFormat } from '../../formats/index.ts';
import { KINDS } from '../../providers/index.ts';
import { SILENT } from '../../testing/laws/field-reasons.ts';
import {
  CHAT_FIELDS,
  GEMINI_FIELDS,
  MESSAGES_FIELDS,
  RESPONSES_FIELDS,
  type Samples,
} from '../../testing/laws/field-samples.ts';
import { Translation } from '../turns/translate.ts';

type Body = Record<string, unknown>;
type Outcome = 'carried' | 'reported' | 'refused' | 'silent';

const FIELDS: Partial<Record<FormatId, Samples>> = {
  chat: CHAT_FIELDS,
  messages: MESSAGES_FIELDS,
  responses: RESPONSES_FIELDS,
  gemini: GEMINI_FIELDS,
};

function targetFor(format: FormatId): EncodeTarget {
  const kind = KINDS.find(({ id }) => id === format)!;
  const model =
    format === 'gemini'
      ? 'gemini-2.5-flash'
      : format === 'converse'
        ? 'anthropic.claude-sonnet-4-5-v1:0'
        : 'some-model';
  return { model, stream: false, maxOutputTokens: 8_000, origin: kind.origin, user: 'hash', dialect: kind.dialect };
}

interface Sent {
  body: string;
  losses: number;
}

function sent(served: ServedFormat, body: Body, format: FormatId): Sent | 'refused' {
  const document = readDocument(Buffer.from(JSON.stringify(body)));
  try {
    served.check(document.value);
    const passage = new Translation(served, document).passage(spokenFormat(format), targetFor(format));
    return { body: String(passage.body), losses: passage.losses.dropped.length };
  } catch (error) {
    if (error instanceof Uncarried) return 'refused';
    if (error instanceof GatewayError && error.status === 400) return 'refused';
    throw error;
  }
}

function outcomeOf(served: ServedFormat, [given, without]: readonly [Body, Body?], format: FormatId): Outcome {
  const plain = sent(served, without ?? BARE[served.id]!, format);
  const result = sent(served, given, format);
  if (result === 'refused') return 'refused';
  assert.ok(plain !== 'refused', `${served.id} to ${format}: the request without the field is refused`);
  if (result.losses > plain.losses) return 'reported';
  return result.body === plain.body ? 'silent' : 'carried';
}

const BARE: Partial<Record<FormatId, Body>> = {
  chat: { model: 'a/b', messages: [{ role: 'user', content: 'hi' }] },
  messages: { model: 'a/b', max_tokens: 4_000, messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'a/b', input: [{ role: 'user', content: 'hi' }] },
  gemini: { model: 'a/b', contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

for (const served of SERVED_FORMATS) {
  test(`no field of ${served.id} is lost silently, except for those with a documented reason`, () => {
    const fields = FIELDS[served.id];
    assert.ok(fields, `no samples of the fields of ${served.id}`);
    const silent: Record<string, string[]> = {};
    for (const [name, sample] of Object.entries(fields)) {
      const formats = SPOKEN_FORMATS.filter((format) => outcomeOf(served, sample, format) === 'silent');
      if (formats.length > 0) silent[name] = formats.toSorted();
    }
    const expected = Object.fromEntries(
      Object.entries(SILENT[served.id as keyof typeof SILENT]).map(([name, { formats }]) => [
        name,
        (formats === 'all' ? [...SPOKEN_FORMATS] : [...formats]).toSorted(),
      ]),
    );
    assert.deepEqual(silent, expected);
  });
}

test('members that only the responses format has are refused by their names', () => {
  const [responses] = SERVED_FORMATS.filter(({ id }) => id === 'responses');
  for (const [name, value] of Object.entries({
    prompt: { id: 'pmpt_1' },
    context_management: [{ type: 'compaction' }],
  })) {
    const body = { model: 'a/b', input: 'hi', [name]: value };
    const translation = new Translation(responses!, readDocument(Buffer.from(JSON.stringify(body))));
    for (const format of SPOKEN_FORMATS.filter((id) => id !== 'responses')) {
      const carry = () => translation.passage(spokenFormat(format), targetFor(format));
      assert.throws(carry, (error) => error instanceof Uncarried && error.message.includes(`${name}: only`), format);
    }
  }
});
