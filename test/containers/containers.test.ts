/** Containers of server tools through whole gateways, in real sandboxes where the machine can make them. */
import assert from 'node:assert/strict';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const place = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const folder = path.join(openFolder(place), 'sandboxes');
const providers = { chat: { kind: 'chat' }, other: { kind: 'chat' } };
const yaml = { sandboxes: { folder, container_time: '1h' } };
const gateway = await startGateway(place, { providers, yaml });
const { target, dataDir } = gateway;
const { call: control } = controlOf(gateway);

const left = () => readdirSync(folder).filter((id) => id.startsWith('c'));
const noneIsAwake = () => until(() => left().length === 0, 'no sandbox is left');

const call = (command: string, id = 'call_1') => ({ id, name: 'bash', arguments: JSON.stringify({ command }) });
const named = (name: string, more: Json = {}) => ({ type: 'container_reference', container_id: name, ...more });

interface Asked {
  environment?: Json;
  of?: Gateway;
  key?: string;
  sleep?: number;
  provider?: string;
}

/** A request whose model runs the commands, one turn each. Its item for each, and what the model read. */
async function work(
  commands: readonly string[],
  { environment, of = gateway, key, sleep = 0, provider = 'chat' }: Asked = {},
) {
  const turns: Told[] = [...commands.map((command, at) => ({ calls: [call(command, `call_${at}`)] })), { text: 'ok' }];
  of.upstream.script(
    provider,
    turns.map((told) => answerOf('chat', false, told)),
  );
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const reply = await of.post(
    '/responses',
    {
      model: `test/${provider}`,
      input: 'Do it',
      tools: [
        {
          type: 'svc:bash',
          parameters: { engine: 'svc', sleep_after_seconds: sleep, ...(environment && { environment }) },
        },
      ],
    },
    headers,
  );
  const body: Json = await reply.json();
  const items: Json[] = (body.output ?? []).filter(({ type }: Json) => type === 'svc:bash');
  return { status: reply.status, body, items, results: items.map(({ result }) => JSON.parse(result)) };
}

const filesOf = async (container: string, query = '', of = gateway): Promise<Json> =>
  (await of.get(`/containers/${container}/files${query}`)).json();

describe('containers', { skip }, () => {
  test('files that cannot be stored are reported in the list of files and to the model of the next request', async () => {
    const [blobs, away] = ['blobs', 'blobs.away'].map((name) => path.join(dataDir, name)) as [string, string];
    await work(['echo one > one'], { environment: named('saved') });
    await noneIsAwake();
    assert.equal((await filesOf('saved')).unsaved_at, undefined);
    // The storage fails.
    renameSync(blobs, away);
    writeFileSync(blobs, '');
    const { items } = await work(['echo lost > lost'], { environment: named('unsaved-new') });
    assert.deepEqual(items.length, 1);
    await noneIsAwake();
    rmSync(blobs);
    renameSync(away, blobs);
    const listed = await filesOf('unsaved-new');
    assert.deepEqual([listed.data, typeof listed.unsaved_at], [[], 'number']);
    gateway.upstream.script(
      'chat',
      [{ calls: [call('ls', 'a')] }, { calls: [call('echo again > again', 'b')] }, { text: 'ok' }].map((told) =>
        answerOf('chat', false, told),
      ),
    );
    const parameters = { engine: 'svc', sleep_after_seconds: 0, environment: named('unsaved-new') };
    const body = { model: 'test/chat', input: 'Do it', tools: [{ type: 'svc:bash', parameters }] };
    const { output } = (await (await gateway.post('/responses', body)).json()) as Json;
    assert.match(output[0].result, /^Note: what was changed in the container unsaved-new until .* could not be stored/);
    assert.doesNotMatch(output[1].result, /could not be stored/);
    await noneIsAwake();
    const after = await filesOf('unsaved-new');
    assert.deepEqual([after.data.map((file: Json) => file.path), after.unsaved_at], [['again'], undefined]);
  });

  test('files of a named container are there for the next request, in every process, and no sandbox is left', async () => {
    const { items, results } = await work(['echo one > note; mkdir -p d/e; echo two > "d/e/größe 1"', 'rm note; ls'], {
      environment: named('notes'),
    });
    const [first, second] = items;
    assert.equal(first.container_id, 'notes');
    assert.deepEqual(
      first.files.map(({ type, container_id, filename }: Json) => [type, container_id, filename]),
      [
        ['container_file_citation', 'notes', 'note'],
        ['container_file_citation', 'notes', 'd/e/größe 1'],
      ],
    );
    assert.deepEqual([results[1].stdout, second.files], ['d\n', undefined]);
    await noneIsAwake();
    const other = await startGateway(place, { providers, yaml, target, dataDir });
    for (const each of [other, gateway, other]) {
      const next = await work(['cat d/e/*; echo more >> d/e/*'], { environment: named('notes'), of: each });
      assert.match(next.results[0].stdout, /^two\n(?:more\n)*$/, JSON.stringify(next.body));
    }
    const { data } = await filesOf('notes', '', other);
    assert.deepEqual(
      data.map(({ path: name, bytes, id }: Json) => [name, bytes, id]),
      [['d/e/größe 1', 'two\n'.length + 3 * 'more\n'.length, first.files[1].file_id]],
    );
    await noneIsAwake();
    await other.close();
  });

  test('a new container has a name of its own, under which the next request finds it; without files nothing is kept', async () => {
    const made = await work(['echo x > x']);
    const { container_id: name } = made.items[0];
    assert.match(name, /^cntr_[0-9a-z]{15}$/);
    const next = await work(['cat x'], { environment: named(name) });
    assert.equal(next.results[0].stdout, 'x\n');
    const empty = await work(['true']);
    assert.notEqual(empty.items[0].container_id, name);
    assert.deepEqual((await filesOf(empty.items[0].container_id)).data, []);
    await noneIsAwake();
  });

  test('a sandbox that stays awake is used again, and only with the files that were stored last', async () => {
    const environment = named('awake');
    await work(['echo 1 > a; echo tmp > /tmp/t'], { environment, sleep: 1000 });
    await until(() => left().length === 1, 'it waits');
    const [id] = left();
    const again = await work(['cat /tmp/t; echo 2 > a'], { environment, sleep: 1000 });
    assert.equal(again.results[0].stdout, 'tmp\n');
    const other = await startGateway(place, { providers, yaml, target, dataDir });
    assert.equal((await work(['cat a; echo 3 > a'], { environment, of: other })).results[0].stdout, '2\n');
    await other.close();
    const back = await work(['cat a; ls /tmp'], { environment });
    assert.equal(back.results[0].stdout, '3\n');
    await until(() => !left().includes(id!), 'the stale sandbox is destroyed');
    gateway.clock.jump(1_001_000);
    await noneIsAwake();
  });

  test('the network of a container is fixed when it starts', async () => {
    const open = (...domains: string[]) => ({ network_policy: { type: 'allowlist', allowed_domains: domains } });
    const none = { network_policy: { type: 'disabled' } };
    await work(['echo 1 > a'], { environment: named('closed') });
    for (const [policy, status] of [
      [open('a.example'), 409],
      [none, 200],
      [{}, 200],
    ] as const) {
      const { status: got, body } = await work(['true'], { environment: named('closed', policy) });
      assert.equal(got, status, JSON.stringify(body));
      if (status === 409) assert.match(body.error.message, /tools\[0\]\.parameters\.environment|closed was started/);
    }
    await noneIsAwake();
  });

  test('the files of a container are listed, shown, downloaded and promoted, by its key only', async () => {
    const { items } = await work(
      ['for n in a b c; do printf "text $n" > $n.txt; done; head -c 10 /dev/zero > binary'],
      {
        environment: named('made'),
      },
    );
    const page = await filesOf('made', '?limit=2');
    assert.deepEqual(
      [page.object, page.data.map((file: Json) => file.path), page.has_more, page.last_id],
      ['list', ['a.txt', 'b.txt'], true, page.data[1].id],
    );
    const rest = await filesOf('made', `?after=${page.last_id}`);
    assert.deepEqual([rest.data.map((file: Json) => file.path), rest.has_more], [['binary', 'c.txt'], false]);
    assert.equal((await gateway.get('/containers/made/files?after=none')).status, 400);
    const [file] = page.data;
    assert.deepEqual(
      { ...file, created_at: 0 },
      {
        ...{ id: items[0].files.find(({ filename }: Json) => filename === 'a.txt').file_id, object: 'container.file' },
        ...{ container_id: 'made', path: 'a.txt', bytes: 6, created_at: 0, source: 'assistant' },
      },
    );
    const at = `/containers/made/files/${file.id}`;
    assert.deepEqual(await (await gateway.get(at)).json(), file);
    const content = await gateway.get(`${at}/content`);
    assert.equal(await content.text(), 'text a');
    const promoted: Json = await (await gateway.post(`${at}/promote`, undefined)).json();
    assert.deepEqual([promoted.filename, promoted.size_bytes, promoted.downloadable], ['a.txt', 6, true]);
    assert.equal(await (await gateway.get(`/files/${promoted.id}/content`)).text(), 'text a');
    const binary = rest.data[0].id;
    assert.equal((await gateway.post(`/containers/made/files/${binary}/promote`, undefined)).status, 400);
    const { key } = (await control('POST', '/keys', { name: 'another' })).body;
    const elsewhere = [at, `${at}/content`];
    for (const route of elsewhere) assert.equal((await gateway.get(route, key)).status, 404);
    const listed: Json = await (await gateway.get('/containers/made/files', key)).json();
    assert.deepEqual([listed.data, listed.first_id], [[], null]);
    assert.equal((await work(['ls'], { environment: named('made'), key })).results[0].stdout, '');
    await noneIsAwake();
  });

  test('two requests use a container one after the other', async () => {
    const environment = named('shared');
    const slow = work(['until [ -e go ]; do sleep 0.05; done; echo slow >> log'], { environment, provider: 'other' });
    await until(() => left().length === 1, 'the first one has it');
    const before = gateway.upstream.requests('chat').length;
    const fast = work(['echo fast >> log; cat log'], { environment });
    await gateway.upstream.request('chat', before + 1);
    writeFileSync(path.join(folder, left()[0]!, 'workspace', 'go'), '');
    await slow;
    assert.equal((await fast).results[0].stdout, 'slow\nfast\n');
    await noneIsAwake();
  });

  test('files of the workspace are copied in once, and are not among those that were made', async () => {
    const form = new FormData();
    form.append('file', new Blob(['given']), 'data.txt');
    const uploaded: Json = await (
      await fetch(`${gateway.api}/files`, {
        method: 'POST',
        headers: { authorization: `Bearer ${INFERENCE_KEY}` },
        body: form,
      })
    ).json();
    const environment = named('copies', { file_ids: [uploaded.id] });
    const copy = `${uploaded.id.slice(-8)}-data.txt`;
    const first = await work(['ls; cat *'], { environment });
    assert.equal(first.results[0].stdout, `${copy}\ngiven`, JSON.stringify(first.body));
    assert.deepEqual((await filesOf('copies')).data, []);
    const changed = await work([`sleep 1; echo changed > ${copy}`], { environment });
    assert.deepEqual(
      changed.items[0].files?.map(({ filename }: Json) => filename),
      [copy],
    );
    const last = await work(['cat *'], { environment });
    assert.equal(last.results[0].stdout, 'changed\n');
    const unknown = await work([], { environment: named('copies', { file_ids: [uploaded.id, 'svc_file_none'] }) });
    assert.equal(unknown.status, 400);
    assert.match(
      unknown.body.error.message,
      /tools\[0\]\.parameters\.environment\.file_ids\[1\] is not the id of a file/,
    );
    await noneIsAwake();
  });
});
