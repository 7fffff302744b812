/** `reasoning.exclude`: the model thinks, and the client sees nothing of it, with every upstream and format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readServedStream, readServedWhole } from '../../src/testing/clients/served-answer.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' }, messages: { kind: 'messages' } } },
);

const SECRET = 'a secret thought';

for (const spoken of ['chat', 'messages'] as const satisfies readonly Format[]) {
  for (const stream of [false, true]) {
    for (const wish of [{ reasoning: { exclude: true, effort: 'high' } }, { include_reasoning: false }]) {
      test(`thinking of ${spoken} is not shown${stream ? ' in a stream' : ''} | ${JSON.stringify(wish)}`, async () => {
        const told = { thinking: { text: SECRET, signature: 'c2ln' }, text: 'four', usage: { input: 9, output: 7 } };
        gateway.upstream.script(spoken, answerOf(spoken, stream, told));
        const messages = [{ role: 'user', content: 'two and two?' }];
        const reply = await gateway.post('/chat/completions', { model: `test/${spoken}`, messages, stream, ...wish });
        const text = await reply.text();
        const { choices, usage } = stream ? readServedStream('chat', text, 'finish') : readServedWhole('chat', text);
        assert.equal(choices[0]!.text, 'four');
        assert.equal(choices[0]!.reasoning, '');
        for (const word of ['secret', 'a s']) assert.equal(text.includes(word), false, text);
        // What binds it for the next turn is there.
        assert.ok(text.includes('c2ln'));
        assert.equal(usage!.output, 7);
      });
    }
  }
}
