/** Model servers of the machine, played by scripted ones on free ports, seen through a whole gateway. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { LocalServer } from '../../src/providers/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type Gateway, type GatewayOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

interface Server {
  port: number;
  /** Paths that were asked for. */
  asked: string[];
  /** What a path answers; undefined is silence. */
  answers: Record<string, Json>;
  stop(): Promise<void>;
  resume(): Promise<void>;
}

async function startServer(t: TestContext, answers: Record<string, Json>): Promise<Server> {
  const asked: string[] = [];
  const state = { answers };
  const server = http.createServer((request, response) => {
    asked.push(request.url!);
    request.resume();
    const answer = state.answers[request.url!];
    if (answer === undefined && request.url! in state.answers) return;
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? { error: 'not found' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    if (server.listening) await once(server, 'close');
  };
  const resume = async () => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  t.after(stop);
  return {
    port,
    asked,
    stop,
    resume,
    get answers() {
      return state.answers;
    },
    set answers(next) {
      state.answers = next;
    },
  };
}

const OLLAMA = {
  models: [
    { name: 'llama3.2:3b', model: 'llama3.2:3b', digest: 'a' },
    { name: 'gpt-oss:120b-cloud', remote_host: 'https://ollama.com' },
  ],
};
const LM_STUDIO = {
  data: [
    {
      id: 'qwen/qwen3-8b',
      object: 'model',
      type: 'llm',
      state: 'loaded',
      max_context_length: 32768,
      loaded_context_length: 8192,
    },
    { id: 'pixtral', object: 'model', type: 'vlm', state: 'not-loaded', max_context_length: 4096 },
    { id: 'nomic', object: 'model', type: 'embeddings', state: 'not-loaded', max_context_length: 2048 },
  ],
};
const VLLM = {
  object: 'list',
  data: [{ id: '/models/mine', object: 'model', owned_by: 'vllm', max_model_len: 16384 }],
};
const LLAMA = {
  object: 'list',
  data: [{ id: 'gemma.gguf', object: 'model', owned_by: 'llamacpp', meta: { n_ctx: 4096 } }],
};

function start(t: TestContext, localServers: LocalServer[], options: GatewayOptions = {}): Promise<Gateway> {
  return startGateway(t, { providers: { own: {} }, localServers, ...options });
}

async function modelsOf(gateway: Gateway): Promise<Json[]> {
  const reply = await gateway.get('/models');
  return ((await reply.json()) as Json).data;
}

/** The ids of the catalog without router models, once there are so many. */
async function idsOf(gateway: Gateway, count: number): Promise<string[]> {
  let ids: string[] = [];
  for (let round = 0; round < 2_000 && ids.length !== count; round++) {
    ids = (await modelsOf(gateway)).map(({ id }) => id).filter((id) => !id.startsWith('svc/'));
  }
  assert.equal(ids.length, count, ids.join(' '));
  return ids;
}

async function costOf(gateway: Gateway, id: string): Promise<number> {
  for (;;) {
    const reply = await gateway.get(`/generation?id=${id}`);
    const body = (await reply.json()) as Json;
    if (reply.status === 200) return body.data.total_cost;
  }
}

test('servers that answer are providers, their models are listed and cost nothing', async (t) => {
  const ollama = await startServer(t, { '/api/tags': OLLAMA, '/v1/chat/completions': chatReply({ text: 'here' }) });
  const lmstudio = await startServer(t, { '/api/v0/models': LM_STUDIO });
  const vllm = await startServer(t, { '/v1/models': VLLM });
  const llamacpp = await startServer(t, { '/v1/models': LLAMA });
  const gateway = await start(t, [
    { kind: 'ollama', port: ollama.port },
    { kind: 'lmstudio', port: lmstudio.port },
    { kind: 'vllm', port: vllm.port },
    { kind: 'llamacpp', port: llamacpp.port },
  ]);
  assert.deepEqual((await idsOf(gateway, 7)).toSorted(), [
    'llamacpp/gemma.gguf',
    'lmstudio/pixtral',
    'lmstudio/qwen/qwen3-8b',
    'ollama/gpt-oss:120b-cloud',
    'ollama/llama3.2:3b',
    'test/own',
    'vllm/models/mine',
  ]);
  const models = await modelsOf(gateway);
  const one = (id: string) => models.find((model) => model.id === id);
  assert.deepEqual(
    [one('ollama/llama3.2:3b').pricing.prompt, one('ollama/llama3.2:3b').pricing.completion],
    ['0', '0'],
  );
  assert.equal(one('lmstudio/qwen/qwen3-8b').context_length, 8192);
  assert.equal(one('vllm/models/mine').context_length, 16384);
  for (const served of ['/chat/completions', '/messages']) {
    const reply = await gateway.post(served, {
      model: 'ollama/llama3.2:3b',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    });
    const body = (await reply.json()) as Json;
    assert.equal(reply.status, 200, JSON.stringify(body));
    assert.equal(body.choices?.[0].message.content ?? body.content[0].text, 'here');
    assert.equal(await costOf(gateway, reply.headers.get('x-generation-id')!), 0);
  }
});

test('a server that comes later is found, its new models too, and it goes when it is gone', async (t) => {
  const ollama = await startServer(t, { '/api/tags': OLLAMA });
  await ollama.stop();
  const gateway = await start(t, [{ kind: 'ollama', port: ollama.port }]);
  assert.deepEqual(await idsOf(gateway, 1), ['test/own']);
  await ollama.resume();
  gateway.clock.jump(30_000);
  await idsOf(gateway, 3);
  ollama.answers = { '/api/tags': { models: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] } };
  gateway.clock.jump(30_000);
  await idsOf(gateway, 4);
  await ollama.stop();
  gateway.clock.jump(30_000);
  assert.deepEqual(await idsOf(gateway, 1), ['test/own']);
  const reply = await gateway.post('/chat/completions', {
    model: 'ollama/a',
    messages: [{ role: 'user', content: 'x' }],
  });
  assert.equal(reply.status, 400);
});

test('other programs on a standard port are ignored', async (t) => {
  const others = [
    await startServer(t, { '/v1/models': { object: 'list', data: [{ id: 'x', owned_by: 'somebody' }] } }),
    await startServer(t, { '/v1/models': '<html>' }),
    await startServer(t, { '/v1/models': { data: [] } }),
    await startServer(t, { '/v1/models': [1, null] }),
    await startServer(t, {}),
  ];
  const gateway = await start(
    t,
    others.map(({ port }) => ({ kind: 'llamacpp' as const, port })),
  );
  await until(() => others.every(({ asked }) => asked.length > 0), 'every server to be asked');
  await until(() => {
    gateway.clock.jump(30_000);
    return others.every(({ asked }) => asked.length > 1);
  }, 'every server to be asked again');
  assert.deepEqual(await idsOf(gateway, 1), ['test/own']);
  for (const { asked } of others) assert.deepEqual(new Set(asked), new Set(['/v1/models']));
});

test('a configured server is not found again, and its id is not taken', async (t) => {
  const vllm = await startServer(t, { '/v1/models': VLLM });
  const ollama = await startServer(t, { '/api/tags': OLLAMA });
  const gateway = await start(
    t,
    [
      { kind: 'vllm', port: vllm.port },
      { kind: 'ollama', port: ollama.port },
    ],
    {
      providers: {
        mine: { kind: 'vllm', base_url: `http://localhost:${vllm.port}/v1` },
        ollama: { kind: 'ollama', base_url: 'http://ollama.example/v1' },
      },
    },
  );
  const ids = await idsOf(gateway, 4);
  assert.ok(ids.includes('ollama/llama3.2:3b'));
  assert.equal(vllm.asked.length, 0);
});

test('a model whose name no id can have is left out, the others stay', async (t) => {
  const ollama = await startServer(t, {
    '/api/tags': { models: [{ name: 'a b' }, { name: '' }, { name: 7 }, { name: 'ok' }] },
  });
  const gateway = await start(t, [{ kind: 'ollama', port: ollama.port }]);
  assert.ok((await idsOf(gateway, 2)).includes('ollama/ok'));
});

test('nothing is asked where discovery is off', async (t) => {
  const ollama = await startServer(t, { '/api/tags': OLLAMA });
  const gateway = await start(t, [{ kind: 'ollama', port: ollama.port }], { env: { GATEHOUSE_DISCOVERY: 'off' } });
  gateway.clock.jump(60_000);
  assert.deepEqual(await idsOf(gateway, 1), ['test/own']);
  assert.equal(ollama.asked.length, 0);
});

test('the gateway never asks itself', async (t) => {
  const own = await startServer(t, {});
  await own.stop();
  const gateway = await start(t, [{ kind: 'llamacpp', port: own.port }], { env: { GATEHOUSE_PORT: String(own.port) } });
  assert.equal(new URL(gateway.url).port, String(own.port));
  gateway.clock.jump(30_000);
  const rows = await modelsOf(gateway);
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['test/own'],
  );
});
