/** Background responses while the wall clock jumps: it is set, or the machine was suspended. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { streamOf } from '../../src/testing/upstream/answers.ts';
import { responsesEvents } from '../../src/testing/upstream/responses-answers.ts';
import { inDatabase, type Json } from '../workspaces/control.ts';
import { clientOf, startScene } from './scene.ts';

const HOUR_MS = 3_600_000;
const env = { GATEHOUSE_KEK: Buffer.alloc(32, 1).toString('base64') };
const { gateway, openai } = await startScene({ env });
/** On the same machine. */
const other = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    ...{ env, target: gateway.target },
    providers: { openai: { kind: 'openai', base_url: gateway.upstream.script('openai', []) } },
  },
);
const elsewhere = clientOf(other);
const EVENTS = responsesEvents({ text: 'abcdef' });
const request = { model: 'test/openai', input: 'hi', background: true, stream: true } as const;

/** A response that runs until the gate opens, and its stream. */
async function running(gate: string): Promise<{ id: string; events: Promise<Json[]> }> {
  gateway.upstream.script('openai', [streamOf([...EVENTS.slice(0, 5), { gate }, ...EVENTS.slice(5)])]);
  const begun = Promise.withResolvers<string>();
  const stream = await openai.responses.create(request);
  const read = async () => {
    const events: Json[] = [];
    for await (const event of stream) {
      events.push(event);
      if (event.type === 'response.output_item.added') begun.resolve(events[0].response.id);
    }
    return events;
  };
  const events = read();
  return { id: await begun.promise, events };
}

function jumpAhead(): void {
  for (const { clock } of [gateway, other]) clock.setWall(HOUR_MS);
}

function aSecondPasses(): void {
  for (const { clock } of [gateway, other]) clock.jump(1_000);
}

test('a running response stays in progress in every process when the wall clock jumps ahead', async () => {
  const { id, events } = await running('first');
  jumpAhead();
  for (const client of [openai, elsewhere]) {
    assert.equal((await client.responses.retrieve(id)).status, 'in_progress');
    const replay = await client.responses.retrieve(id, { stream: true });
    for await (const event of replay) if (event.type === 'response.output_item.added') break;
  }
  await assert.rejects(openai.responses.create({ ...request, previous_response_id: id }), /has not ended yet/);
  gateway.upstream.open('first');
  assert.equal((await events).at(-1).type, 'response.completed');
  assert.equal((await elsewhere.responses.retrieve(id)).status, 'completed');
});

test('a running response can be cancelled right after the wall clock has jumped ahead', async () => {
  const { id, events } = await running('never');
  jumpAhead();
  assert.equal((await elsewhere.responses.cancel(id)).status, 'cancelled');
  assert.equal((await events).at(-1).response.status, 'cancelled');
});

test('a response whose process died is noticed soon after the wall clock has jumped ahead', async () => {
  const { id, events } = await running('dead');
  await inDatabase(gateway, [`update responses set claim = gen_random_uuid() where id = '${id}'`]);
  jumpAhead();
  assert.equal((await elsewhere.responses.retrieve(id)).status, 'in_progress');
  let looks = 0;
  await until(async () => {
    aSecondPasses();
    looks += 1;
    return (await elsewhere.responses.retrieve(id)).status === 'failed';
  }, 'the response has failed');
  assert.ok(looks <= 31, `${looks}`);
  assert.equal((await events).at(-1).response.status, 'failed');
});
