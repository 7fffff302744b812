/** Background responses whose process does not learn that a transaction was committed, since its connection broke. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { tapDatabase } from '../../src/testing/database/database-tap.ts';
import { losingAnswers } from '../../src/testing/database/lost-answers.ts';
import { streamOf } from '../../src/testing/upstream/answers.ts';
import { responsesEvents } from '../../src/testing/upstream/responses-answers.ts';
import type { Json } from '../workspaces/control.ts';
import { startScene } from './scene.ts';

const scope = { after: (close: unknown) => after(close as () => Promise<void>) };
const database = await losingAnswers(scope, await emptyDatabase(scope, migrations, true));
const tap = await tapDatabase(scope, database.target);
after(() => tap.close());
const { gateway, openai, script } = await startScene({ target: tap.target });
const EVENTS = responsesEvents({ text: 'abcdef' });
const inserts = (transaction: readonly string[], table: string) =>
  transaction.some((statement) => statement.includes(`insert into ${table} `));

test('events that follow a write whose commit was not answered are replayed', async () => {
  const gate = 'the commit is lost';
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 5), { gate }, ...EVENTS.slice(5)])]);
  database.lose(
    (statement, transaction) =>
      statement === 'commit' && inserts(transaction, 'response_events') && !inserts(transaction, 'responses'),
  );
  // The write is tried again only with the end.
  gateway.clock.stand();
  const stream = await openai.responses.create({ model: 'test/openai', input: 'hi', background: true, stream: true });
  await until(() => database.lost.length === 1, 'the answer to a commit is lost');
  gateway.upstream.open(gate);
  const events: Json[] = [];
  for await (const event of stream) events.push(event);
  gateway.clock.goOn();
  assert.deepEqual(
    events.map(({ sequence_number: number }) => number),
    [...events.keys()],
  );
  assert.equal(events.map(({ type, delta }) => (type.endsWith('_text.delta') ? delta : '')).join(''), 'abcdef');
  assert.equal(events.at(-1).type, 'response.completed');
});

test('a response is added to its conversation once, although the commit was not answered', async () => {
  const conversation = await openai.conversations.create();
  script('chat', false, { text: 'a' });
  database.lose((statement, transaction) => statement === 'commit' && inserts(transaction, 'conversation_items'));
  const request = { model: 'test/chat', input: 'hi', background: true, conversation: conversation.id };
  const { id } = await openai.responses.create(request);
  const ends = () => tap.statements.filter((each) => each.includes('update responses set status = case')).length;
  const before = ends();
  await until(() => {
    gateway.clock.jump(1_000);
    return ends() === before + 2;
  }, 'the end is written again');
  await tap.quiet();
  const done: Json = await until(async () => {
    const shown = await openai.responses.retrieve(id);
    return shown.status === 'completed' && shown;
  }, 'the response is completed');
  assert.equal(done.output_text, 'a');
  const items = await openai.conversations.items.list(conversation.id);
  assert.deepEqual(
    items.data.map(({ type, role }: Json) => [type, role]),
    [
      ['message', 'assistant'],
      ['message', 'user'],
    ],
  );
});
