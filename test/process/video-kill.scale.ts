/** kill -9 of the process that makes videos, at random moments: each video is asked for once, made, and paid once. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../src/testing/clock/clock.ts';
import { embeddedTarget, readDays, readRows } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { scaleSize } from './scale-size.ts';

const ROUNDS = scaleSize('VIDEO_KILLS', 12);
const JOBS = 8;
const PATIENCE_MS = 180_000;

test('every video is asked for once, made and paid once, whenever its process is killed', async (t) => {
  const upstream = await videoService();
  t.after(() => upstream.server.close());
  const home = await gatewayHome(t);
  const yaml = plannedYaml(upstream.url, {
    provider: { id: 'videos', kind: 'openai' },
    model: {
      ...{ id: 'test/videos', output_modalities: ['video'] },
      pricing: { prompt: '0', completion: '0', output_second: '0.1' },
    },
  });
  const accepted = new Map<string, string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const gateway = await startGatewayProcess(t, { home, yaml });
    const ask = async (tag: string) => {
      await pause(randomInt(2_000));
      const made = await gateway.post('/videos', { model: 'test/videos', prompt: tag, duration: 8, user: tag });
      if (made.status === 202) accepted.set(tag, ((await made.json()) as { id: string }).id);
    };
    const asked = Array.from({ length: JOBS }, (_, index) => ask(`video ${round} ${index}`).catch(() => {}));
    await pause(randomInt(8_000));
    gateway.signal('SIGKILL');
    await gateway.exit;
    await Promise.all(asked);
  }
  const last = await startGatewayProcess(t, { home, yaml });
  for (const [tag, id] of accepted) {
    const read = async () => (await (await last.get(`/videos/${id}`)).json()) as { status: string };
    const isOver = async () => (await read()).status !== 'in_progress';
    await until(isOver, `${tag} ends`, PATIENCE_MS);
    assert.equal((await read()).status, 'completed', tag);
    assert.equal(await (await last.get(`/videos/${id}/content`)).text(), `film of ${upstream.jobOf(tag)}`);
  }
  const rows = await until(async () => {
    const found = await readRows(embeddedTarget(home));
    return found.length >= upstream.asked.length ? found : undefined;
  }, 'every row');
  const tags = rows.map(({ tag }) => tag);
  assert.equal(new Set(tags).size, tags.length, 'one row for each request');
  assert.equal(new Set(upstream.asked).size, upstream.asked.length, 'no video was asked for twice');
  for (const row of rows.filter(({ tag }) => accepted.has(tag)))
    assert.deepEqual([row.cost, row.status], [800_000_000n, 200], row.tag);
  const cost = rows.reduce((sum, row) => sum + row.cost, 0n);
  assert.equal((await readDays(embeddedTarget(home))).cost, cost);
  t.diagnostic(`${accepted.size} jobs accepted, ${upstream.asked.length} asked for, ${ROUNDS} kills`);
});

/** OpenAI's format: a job ends at its second poll. */
async function videoService() {
  const asked: string[] = [];
  const polls = new Map<string, number>();
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [, id, isContent] = /\/videos(?:\/([^/]+)(\/content)?)?$/.exec(request.url!) ?? [];
    const reply = (status: string, job: string) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: job, status, seconds: '8' }));
    if (id === undefined) {
      const count = asked.push(/video \d+ \d+/.exec(Buffer.concat(chunks).toString())![0]);
      await pause(randomInt(300));
      reply('queued', `v_${count}`);
    } else if (isContent === undefined) {
      polls.set(id, (polls.get(id) ?? 0) + 1);
      await pause(randomInt(300));
      reply(polls.get(id)! < 2 ? 'in_progress' : 'completed', id);
    } else {
      response.writeHead(200, { 'content-type': 'video/mp4' }).write('film ');
      await pause(randomInt(1_000));
      response.end(`of ${id}`);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { server, url, asked, jobOf: (tag: string) => `v_${asked.indexOf(tag) + 1}` };
}
