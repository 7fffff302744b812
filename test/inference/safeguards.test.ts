/** Safeguard results of an upstream reach clients of both formats, whichever format they came in. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, FORMAT_PAIRS } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  CHAT_DONE,
  chatChunk,
  chatData,
  chatFinish,
  chatReply,
  type Format,
  messagesEvents,
  messagesReply,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {}, messages: { kind: 'messages' } } },
);

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Json = any;

const RESULTS = [
  {
    type: 'dangerous_tool_use',
    status: { type: 'available', tool_uses: { toolu_1: { type: 'evaluated', outcome: 'flagged', explanation: 'é' } } },
  },
];
const CALL = { id: 'toolu_1', name: 'f', arguments: '{}' };

function wholeFrom(format: Format) {
  const reply = format === 'chat' ? chatReply({ calls: [CALL] }) : messagesReply({ calls: [CALL] });
  return wholeOf({ ...reply, safeguard_results: RESULTS });
}

function streamFrom(format: Format) {
  if (format === 'messages') {
    const events = messagesEvents({ calls: [CALL] }).map((event) =>
      event.startsWith('event: message_delta')
        ? event.replace('"stop_sequence":null', `"stop_sequence":null,"safeguard_results":${JSON.stringify(RESULTS)}`)
        : event,
    );
    return streamOf(events);
  }
  const call = { index: 0, id: CALL.id, type: 'function', function: { name: CALL.name, arguments: '{}' } };
  const last = chatData({ ...JSON.parse(chatFinish('tool_calls').slice(6)), safeguard_results: RESULTS });
  return streamOf([chatChunk({ role: 'assistant', tool_calls: [call] }), last, CHAT_DONE]);
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`safeguard results | ${name}`, async () => {
    const body = { messages: [{ role: 'user', content: 'x' }] };
    gateway.upstream.script(spoken, wholeFrom(spoken));
    const { json } = await ask(gateway, served, `test/${spoken}`, body);
    assert.deepEqual(json.safeguard_results, RESULTS);
    gateway.upstream.script(spoken, streamFrom(spoken));
    const { text } = await ask(gateway, served, `test/${spoken}`, { ...body, stream: true });
    const events = text
      .split('\n')
      .flatMap((line): Json[] => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
    const told = events.flatMap((event) => event.safeguard_results ?? event.delta?.safeguard_results ?? []);
    assert.deepEqual(told, RESULTS);
  });
}
