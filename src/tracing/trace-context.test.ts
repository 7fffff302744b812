import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remoteParent, traceparent } from './trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test('a header of version 00 names the trace, the parent and whether it is sampled', () => {
  const own = { traceId: TRACE, spanId: SPAN, state: undefined };
  assert.deepEqual(remoteParent({ traceparent: traceparent(TRACE, SPAN, true) }), { ...own, sampled: true });
  assert.deepEqual(remoteParent({ traceparent: traceparent(TRACE, SPAN, false) }), { ...own, sampled: false });
  assert.equal(remoteParent({ traceparent: `00-${TRACE}-${SPAN}-03` })!.sampled, true);
});

test('a later version may have more members', () => {
  assert.equal(remoteParent({ traceparent: `01-${TRACE}-${SPAN}-01-more` })!.traceId, TRACE);
});

test('a malformed header is ignored', () => {
  const malformed = [
    undefined,
    '',
    'abc',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\r\nx: y`,
    [`00-${TRACE}-${SPAN}-01`],
  ];
  for (const header of malformed) assert.equal(remoteParent({ traceparent: header }), undefined, String(header));
});

test('the state is kept as it is, unless it is no header or too long', () => {
  const stateOf = (tracestate: string) =>
    remoteParent({ traceparent: traceparent(TRACE, SPAN, true), tracestate })!.state;
  assert.equal(stateOf('vendor=a,other=b'), 'vendor=a,other=b');
  assert.equal(stateOf('x'.repeat(513)), undefined);
  assert.equal(stateOf('a=\u00e4'), undefined);
});
