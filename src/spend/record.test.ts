import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SAMPLE_USAGE, sampleAccepted, sampleAttempt } from '../testing/laws/spend-samples.ts';
import {
  decodeAttempt,
  decodeIntent,
  decodeProgress,
  decodeSettled,
  encodeAttempt,
  encodeIntent,
  encodeProgress,
  encodeSettled,
  type RecordKind,
  unframe,
} from './record.ts';
import { RecordBuffer } from './record-buffer.ts';

/** The bytes of one record. */
function line(kind: RecordKind, json: string): Buffer {
  const records = new RecordBuffer();
  records.add(kind, json);
  return Buffer.from(records.bytes.subarray(0, records.length));
}

const text = fc.string({ unit: 'binary', maxLength: 20 });
const money = fc.bigInt({ min: 0n, max: 2n ** 53n });

test('every record is read back as it was written, for any text', () => {
  fc.assert(
    fc.property(text, money, fc.boolean(), fc.nat(), (name, nano, includeByok, bytes) => {
      const earlier = { creditNano: 1n, byokNano: 2n };
      const turns = includeByok ? { earlierUsage: SAMPLE_USAGE } : {};
      const attempt = sampleAttempt({ model: name, promptNano: nano, earlier, ...turns });
      const intent = {
        accepted: sampleAccepted('gen-1', { title: name }),
        attempt,
        held: [{ windowId: name, nano, includeByok }],
      };
      const progress = { outputBytes: bytes, usage: SAMPLE_USAGE, charge: { creditNano: nano, byokNano: 2n } };
      const entry = { id: 'gen-1', row: '{"a":1}', taken: [{ windowId: name, nano, forcedNano: 3n }] };
      const passed = (kind: RecordKind, json: string) => {
        const bytes = line(kind, json);
        assert.equal(bytes.indexOf('\n'), bytes.length - 1);
        return unframe(bytes.toString('utf8', 0, bytes.length - 1))!.json;
      };
      assert.deepEqual(decodeIntent(passed('I', encodeIntent(intent))), intent);
      assert.deepEqual(decodeAttempt(passed('A', encodeAttempt('gen-1', attempt))), { id: 'gen-1', attempt });
      const held = { creditNano: 7n, byokNano: 3n };
      const grown = { id: 'gen-1', attempt, held };
      assert.deepEqual(decodeAttempt(passed('A', encodeAttempt('gen-1', attempt, held))), grown);
      assert.deepEqual(decodeProgress(passed('P', encodeProgress('gen-1', progress))), { id: 'gen-1', progress });
      assert.deepEqual(decodeSettled(passed('S', encodeSettled(entry))), entry);
    }),
  );
});

test('a record with any byte missing or changed is not accepted', () => {
  const whole = line('I', encodeIntent({ accepted: sampleAccepted('gen-1'), attempt: sampleAttempt(), held: [] }));
  for (let at = 0; at < whole.length - 1; at++) {
    assert.equal(unframe(whole.toString('utf8', 0, at)), undefined);
    const changed = Buffer.from(whole);
    changed[at] = changed[at]! ^ 1;
    const kindOnly = at === 0 && 'IAPS'.includes(String.fromCharCode(changed[0]!));
    if (!kindOnly) assert.equal(unframe(changed.toString('utf8', 0, whole.length - 1)), undefined);
  }
});

test('records written together equal those that were added, at the returned offsets', () => {
  const records = new RecordBuffer();
  const texts = ['["a"]', JSON.stringify(['ä\ud83d\ude00'.repeat(40_000)]), '["last"]'];
  const starts = texts.map((json) => records.add('S', json));
  assert.equal(records.count, 3);
  const ends = [...starts.slice(1), records.length];
  const read = starts.map((start, index) => unframe(records.bytes.toString('utf8', start, ends[index]! - 1)));
  assert.deepEqual(
    read,
    texts.map((json) => ({ kind: 'S', json })),
  );
  records.clear();
  assert.deepEqual([records.count, records.length, records.add('P', '[]')], [0, 0, 0]);
});

test('an intent of an earlier version is read with empty values for what it does not know', () => {
  const { id, createdAt, keyId, workspaceId, organizationId } = sampleAccepted('gen-1');
  const accepted = { id, createdAt, keyId, workspaceId, organizationId, apiType: 'completions', dataRegion: 'global' };
  const attempt = ['acme/large', null, null, false, 100, '500', '20', '7'];
  const intent = decodeIntent(JSON.stringify([accepted, attempt, [['window', '9', true]]]));
  assert.deepEqual(intent.accepted, {
    ...accepted,
    requestId: null,
    streamed: false,
    userAgent: null,
    origin: '',
    title: null,
    sessionId: null,
    externalUser: null,
    presetId: null,
    metadata: null,
  });
  assert.deepEqual(intent.attempt.earlier, { creditNano: 7n, byokNano: 0n });
});
