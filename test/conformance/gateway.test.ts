/** `gatehouse conformance` finds nothing lost in this gateway, and finds what a careless proxy loses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { checkConformance, GATEWAYS, upstreamsUrl } from '../../src/conformance/index.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

/** A thin part of the suite, of each group something; all of it is `whole.scale.ts`. */
const THIN = ['signatures', 'cut within', 'disconnect during', 'refusal (400)', 'failover before'];

test('a part of every group of the suite finds nothing lost in this gateway', async (t) => {
  const port = await freePort();
  const yaml = JSON.parse(GATEWAYS['gatehouse']!.config(upstreamsUrl(port)));
  const { url } = await startGateway(t, { yaml });
  for (const only of THIN) {
    const options = { gateway: 'gatehouse', baseUrl: url, key: INFERENCE_KEY, port, only, clock: systemClock };
    const rows = await checkConformance(options);
    const cells = rows.flatMap((row) => row.cells);
    assert.ok(cells.length > 0, only);
    assert.deepEqual(
      cells.filter(({ verdict }) => verdict !== 'kept' && verdict !== 'outside'),
      [],
      only,
    );
  }
});

test('a proxy that repeats bytes and swallows breaks is found out', async (t) => {
  const port = await freePort();
  const baseUrl = await carelessProxy(t, upstreamsUrl(port));
  // The suite waits for what this proxy never does.
  const clock = { ...systemClock, timer: (ms: number, run: () => void) => systemClock.timer(ms / 10, run) };
  const found = async (only: string, client: string, upstream?: string) => {
    const rows = await checkConformance({ gateway: 'other', baseUrl, key: 'k', port, only, clock });
    return rows[0]?.cells.find((cell) => cell.client === client && cell.upstream === upstream)?.verdict;
  };
  assert.equal(await found('system prompt', 'chat', 'chat'), 'kept');
  assert.equal(await found('system prompt', 'chat', 'messages'), 'unserved');
  assert.equal(await found('temperature', 'chat', 'chat'), 'lost');
  assert.equal(await found('passed on', 'chat', 'chat'), 'lost');
  assert.equal(await found('cut after the first text', 'chat', 'chat'), 'lost');
  assert.equal(await found('cost', 'chat', 'chat'), 'absent');
  assert.equal(await found('wrong key', 'messages'), 'lost');
});

/** Sends requests to the upstream of their model in the format of the client, a member short, and answers once it has everything. */
async function carelessProxy(t: TestContext, upstreams: string): Promise<string> {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString().replace('"temperature":0.5,', '');
    const upstream = /"model":"conformance\/(\w+)"/.exec(body)?.[1] ?? 'chat';
    const answer = await fetch(`${upstreams}/${upstream}/v1${request.url}`, { method: 'POST', body });
    const text: Uint8Array[] = [];
    try {
      for await (const piece of answer.body ?? []) text.push(piece as Uint8Array);
    } catch {
      // What came before the break is taken for all of it.
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(Buffer.concat(text));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
