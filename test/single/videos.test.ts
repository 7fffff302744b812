/** `/videos` through a whole gateway: jobs, their content, their price, and every way of ending. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { createLog } from '../../src/base/log.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const model = (upstream_id: string) => ({
  upstream_id,
  pricing: { prompt: '0', completion: '0', output_second: '0.1' },
  output_modalities: ['video'],
});
const options = {
  env: { GATEHOUSE_NAMESPACE: 'openrouter' },
  providers: {
    sora: { kind: 'openai', model: model('sora-2') },
    twin: { kind: 'openrouter', model: model('acme/film') },
    simulated: { kind: 'simulated', model: model('video') },
  },
};
const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, options);
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const openrouter = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

const json = (body: unknown, more: Partial<Answer> = {}): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(body)],
  ...more,
});
const FILM = Buffer.concat([Buffer.from('\0\0\0\x10ftypisom', 'latin1'), Buffer.alloc(5_000, 7)]);
const QUEUED = json({ id: 'v_1', status: 'queued', seconds: '8' });
const RUNNING = json({ id: 'v_1', status: 'in_progress', seconds: '8' });
const DONE = json({ id: 'v_1', status: 'completed', seconds: '8' });
const CONTENT: Answer = { headers: { 'content-type': 'video/mp4' }, chunks: [FILM] };
const script = (...answers: Answer[]) => gateway.upstream.script('sora', answers);
const count = () => gateway.upstream.requests('sora').length;

interface Job {
  id: string;
  status: string;
  polling_url: string;
  generation_id: string;
  unsigned_urls?: string[];
  usage?: { cost: number };
  error?: string;
}

async function create(body: Record<string, unknown> = {}, headers = {}): Promise<Job> {
  const response = await gateway.post(
    '/videos',
    { model: 'test/sora', prompt: 'a cat', duration: 8, ...body },
    headers,
  );
  const job = (await response.json()) as Job;
  assert.equal(response.status, 202, JSON.stringify(job));
  return job;
}

async function look(id: string): Promise<Job> {
  return (await (await gateway.get(`/videos/${id}`)).json()) as Job;
}

/** Lets the gateway look at the upstream until the job has ended. */
function ended(id: string): Promise<Job> {
  return until(async () => {
    gateway.clock.jump(5_000);
    const job = await look(id);
    return job.status === 'in_progress' ? undefined : job;
  }, 'the job ends');
}

async function rowOf(id: string): Promise<Record<string, unknown>> {
  return until(async () => {
    const found = await gateway.get(`/generation?id=${id}`);
    if (found.status !== 200) return undefined;
    return ((await found.json()) as { data: Record<string, unknown> }).data;
  }, 'the row');
}

test('a job is accepted, polled and paid once, and its content is kept', async () => {
  const before = count();
  script(QUEUED, RUNNING, json({}, { status: 503 }), DONE, CONTENT);
  const job = await create();
  assert.equal(job.status, 'in_progress');
  const early = await gateway.get(`/videos/${job.id}/content`);
  assert.equal(early.status, 409, await early.text());
  const done = await ended(job.id);
  assert.equal(done.status, 'completed');
  assert.equal(done.usage!.cost, 0.8);
  const url = done.unsigned_urls![0]!;
  const content = await fetch(url, { headers: { authorization: `Bearer ${INFERENCE_KEY}` } });
  assert.equal(content.headers.get('content-type'), 'video/mp4');
  assert.deepEqual(Buffer.from(await content.arrayBuffer()), FILM);
  const range = { authorization: `Bearer ${INFERENCE_KEY}`, range: 'bytes=4-11' };
  assert.equal(await (await fetch(url, { headers: range })).text(), 'ftypisom');
  const row = await rowOf(job.generation_id);
  assert.equal(row['api_type'], 'video');
  assert.equal(row['total_cost'], 0.8);
  assert.equal(row['upstream_id'], 'v_1');
  assert.deepEqual(
    gateway.upstream
      .requests('sora')
      .slice(before)
      .map(({ method, path }) => `${method} ${path}`),
    ['POST /videos', 'GET /videos/v_1', 'GET /videos/v_1', 'GET /videos/v_1', 'GET /videos/v_1/content'],
  );
});

test('a job that fails costs nothing and says why', async () => {
  script(QUEUED, json({ id: 'v_1', status: 'failed', error: { code: 'moderation_blocked', message: 'not this' } }));
  const job = await create();
  const failed = await ended(job.id);
  assert.deepEqual([failed.status, failed.usage!.cost], ['failed', null]);
  assert.match(failed.error!, /not this/);
  assert.equal((await rowOf(job.generation_id))['total_cost'], 0);
  assert.equal((await gateway.get(`/videos/${job.id}/content`)).status, 409);
});

test('a video of unknown length is charged by an estimate', async () => {
  script(json({ id: 'v_1', status: 'queued' }), json({ id: 'v_1', status: 'completed' }), CONTENT);
  const job = await create({ duration: undefined });
  assert.equal((await ended(job.id)).usage!.cost, 0.5);
});

test('the requests of running jobs have a limit', async (t) => {
  const small = await startGateway(t, {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    yaml: { limits: { inference_body_bytes: 4_000 } },
    providers: { simulated: { kind: 'simulated', model: model('video') } },
  });
  const ask = () => small.post('/videos', { model: 'test/simulated', prompt: 'x'.repeat(3_900), duration: 1 });
  for (let count = 0; count < 16; count += 1) assert.equal((await ask()).status, 202);
  const refused = await ask();
  assert.equal(refused.status, 503, await refused.text());
  assert.ok(refused.headers.get('retry-after'));
  await until(async () => {
    small.clock.jump(5_000);
    return (await ask()).status === 202;
  }, 'there is room again');
});

test('what no provider accepts is refused at once, without a job', async () => {
  script(json({ error: { message: 'no such size', type: 'invalid_request_error' } }, { status: 400 }));
  const refused = await gateway.post('/videos', { model: 'test/sora', prompt: 'a cat' });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /no such size/);
});

test('the SDKs: forms of OpenAI, and every method of @openrouter/sdk', async () => {
  script(QUEUED, DONE, CONTENT);
  const made = await openai.videos.create({
    model: 'test/sora' as never,
    prompt: 'a dog',
    seconds: '8',
    size: '1280x720',
  });
  assert.equal((await openai.videos.retrieve(made.id)).status, 'in_progress');
  await ended(made.id);
  const film = await openai.videos.downloadContent(made.id);
  assert.deepEqual(Buffer.from(await film.arrayBuffer()), FILM);
  script(QUEUED, DONE, CONTENT);
  const job = await openrouter.videoGeneration.generate({
    videoGenerationRequest: { model: 'test/sora', prompt: 'a bird', duration: 8 },
  });
  await ended(job.id);
  const shown = await openrouter.videoGeneration.getGeneration({ jobId: job.id });
  assert.equal(shown.status, 'completed');
  const stream = await openrouter.videoGeneration.getVideoContent({ jobId: job.id });
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk);
  assert.deepEqual(Buffer.concat(chunks), FILM);
  const models = await openrouter.videoGeneration.listVideosModels();
  assert.deepEqual(models.data.map(({ id }) => id).toSorted(), ['test/simulated', 'test/sora', 'test/twin']);
});

test('the jobs of a workspace are listed in pages, and one that has ended is deleted with its content', async (t) => {
  script(QUEUED, DONE, CONTENT, QUEUED, DONE, CONTENT);
  const first = await create();
  await ended(first.id);
  const second = await create();
  const page = await openai.videos.list({ limit: 1 });
  assert.deepEqual(
    page.data.map(({ id }) => id),
    [second.id],
  );
  assert.equal((await page.getNextPage()).data[0]!.id, first.id);
  await assert.rejects(openai.videos.list({ after: 'nope' }), { status: 400, message: /after must be the id/ });
  await assert.rejects(openai.videos.downloadContent(first.id, { variant: 'thumbnail' }), { status: 400 });
  const oldest = await openai.videos.list({ limit: 1, order: 'asc' });
  assert.notEqual(oldest.data[0]!.id, second.id);
  await assert.rejects(openai.videos.delete(second.id), { status: 409 });
  await ended(second.id);
  assert.deepEqual(await openai.videos.delete(second.id), { id: second.id, object: 'video.deleted', deleted: true });
  await assert.rejects(openai.videos.retrieve(second.id), { status: 404 });
  await assert.rejects(openai.videos.delete(second.id), { status: 404 });
  const sql = await connectOnce(t, gateway.target);
  const { rows } = await sql.query(`select resource_id from audit_entries where action = 'video.deleted'`);
  assert.deepEqual(rows, [{ resource_id: second.id }]);
});

test('another gateway gets the request as it came, and the simulated model needs no account', async () => {
  gateway.upstream.script('twin', [
    json({ id: 'v_2', status: 'pending' }),
    json({ id: 'v_2', status: 'completed' }),
    CONTENT,
  ]);
  const job = await create({ model: 'test/twin', aspect_ratio: '16:9', generate_audio: true });
  assert.partialDeepStrictEqual(gateway.upstream.requests('twin').at(-1)!.json, {
    ...{ model: 'acme/film', prompt: 'a cat', duration: 8, aspect_ratio: '16:9', generate_audio: true },
  });
  assert.equal((await ended(job.id)).usage!.cost, 0.8);
  const simulated = await create({ model: 'test/simulated', duration: 3 });
  const [done] = [await ended(simulated.id)];
  assert.ok(Math.abs(done.usage!.cost - 0.3) < 1e-9);
  assert.equal((await (await gateway.get(`/videos/${simulated.id}/content`)).arrayBuffer()).byteLength, 3 * 1024);
});

test('a job continues a completed one at its endpoint, with the credential that made it', async () => {
  script(QUEUED, DONE, CONTENT);
  const first = await create();
  await ended(first.id);
  script(
    json({ id: 'v_3', status: 'queued', seconds: '8' }),
    json({ id: 'v_3', status: 'completed', seconds: '8' }),
    CONTENT,
  );
  const prompt = 'the cat bows';
  const next = await create({ prompt, previous_job_id: first.id, duration: undefined });
  const sent = gateway.upstream.requests('sora').at(-1)!;
  assert.deepEqual([sent.method, sent.path, sent.json], ['POST', '/videos/v_1/remix', { prompt }]);
  assert.equal((await ended(next.id)).usage!.cost, 0.8);

  gateway.upstream.script('twin', [
    json({ id: 'v_4', status: 'pending' }),
    json({ id: 'v_4', status: 'completed' }),
    CONTENT,
  ]);
  const twin = await create({ model: 'test/twin' });
  await ended(twin.id);
  gateway.upstream.script('twin', [json({ id: 'v_5', status: 'pending' })]);
  await create({ model: 'test/twin', previous_job_id: twin.id });
  assert.partialDeepStrictEqual(gateway.upstream.requests('twin').at(-1)!.json, {
    previous_job_id: 'v_4',
    duration: 8,
  });
  const simulated = await create({ model: 'test/simulated', duration: 3 });
  await ended(simulated.id);
  const again = await create({ model: 'test/simulated', duration: undefined, previous_job_id: simulated.id });
  assert.ok(Math.abs((await ended(again.id)).usage!.cost - 0.3) < 1e-9);

  script(
    json({ id: 'v_6', status: 'queued', seconds: '8' }),
    json({ id: 'v_6', status: 'completed', seconds: '8' }),
    CONTENT,
  );
  const remixed = await openai.videos.remix(first.id, { prompt });
  assert.deepEqual(gateway.upstream.requests('sora').at(-1)!.path, '/videos/v_1/remix');
  assert.equal((await ended(remixed.id)).status, 'completed');
  // It is governed as any other request.
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'poor', limit: 0.5 }),
  });
  const poor = new OpenAI({
    apiKey: ((await created.json()) as { key: string }).key,
    baseURL: gateway.api,
    maxRetries: 0,
  });
  const before = count();
  await assert.rejects(poor.videos.remix(first.id, { prompt }), { status: 402 });
  await assert.rejects(openai.videos.remix(first.id, { prompt: '' }), { status: 400 });
  const failing = await openai.videos.list({ limit: 100 });
  const failedJob = failing.data.find(({ status }) => status === 'failed')!;
  await assert.rejects(openai.videos.remix(failedJob.id, { prompt }), { status: 409 });
  await assert.rejects(openai.videos.remix(`vid_${'0'.repeat(32)}`, { prompt }), { status: 404 });
  for (const [body, field] of [
    [{ previous_job_id: `vid_${'0'.repeat(32)}` }, 'previous_job_id must be'],
    [{ previous_job_id: 'v_1' }, 'previous_job_id must be'],
    [{ previous_job_id: next.id, model: 'test/twin' }, 'previous_job_id can be continued only by'],
    [{ previous_job_id: first.id }, 'duration: '],
    [{ previous_job_id: first.id, duration: undefined, size: '1280x720' }, 'size: '],
  ] as const) {
    const refused = await gateway.post('/videos', { model: 'test/sora', prompt, duration: 8, ...body });
    const { error } = (await refused.json()) as { error: { message: string } };
    assert.equal(refused.status, 400, error.message);
    assert.ok(error.message.includes(field), error.message);
  }
  assert.equal(count(), before);
});

test('a job is seen in its workspace only', async () => {
  const control = (route: string, body: unknown) =>
    fetch(`${gateway.api}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then((response) => response.json() as Promise<{ data: { id: string }; key: string }>);
  const { data } = await control('/workspaces', { name: 'Elsewhere', slug: 'elsewhere' });
  const { key } = await control('/keys', { name: 'other', workspace_id: data.id });
  const job = await create({ model: 'test/simulated' });
  for (const route of [`/videos/${job.id}`, `/videos/${job.id}/content`]) {
    assert.equal((await gateway.get(route, key)).status, 404);
  }
  await ended(job.id);
});

test('the budget holds the price of the video until the job ends', async () => {
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'small', limit: 1 }),
  });
  const { key } = (await created.json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  script(QUEUED, json({ id: 'v_1', status: 'failed' }), QUEUED, DONE, CONTENT);
  const first = await create({}, headers);
  const second = await gateway.post('/videos', { model: 'test/sora', prompt: 'a', duration: 8 }, headers);
  assert.equal(second.status, 402, await second.text());
  await ended(first.id);
  const third = await create({}, headers);
  assert.equal((await ended(third.id)).status, 'completed');
});

test('the content expires, then the job', async () => {
  const job = await create({ model: 'test/simulated' });
  await ended(job.id);
  gateway.clock.jump(8 * 86_400_000);
  assert.equal((await look(job.id)).status, 'expired');
  assert.equal((await gateway.get(`/videos/${job.id}/content`)).status, 410);
});

test('another process ends the jobs of dead processes and of one that stops, each once, and removes expired content', async (t) => {
  // A database of its own: every gateway of this file that runs jobs would take them over. So would the first process,
  // whose upstream never ends them, if it ran the jobs that the next one announces.
  const first = await startGateway(t, { ...options, jobs: 'own' });
  const { target } = first;
  const sql = await connectOnce(t, target);
  const make = async (from: typeof first, body = {}) => {
    const response = await from.post('/videos', { model: 'test/sora', prompt: 'a cat', duration: 8, ...body });
    const job = (await response.json()) as Job;
    assert.equal(response.status, 202, JSON.stringify(job));
    return job;
  };
  const seen = (from: typeof first, { id }: Job) =>
    from.get(`/videos/${id}`).then((found) => found.json() as Promise<Job>);
  const set = (change: string, { id }: Job) => sql.query(`update videos set ${change} where id = $1`, [id]);

  const [lost, old] = [await make(first, { model: 'test/simulated' }), await make(first, { model: 'test/simulated' })];
  first.clock.jump(5_000);
  for (const each of [lost, old])
    await until(async () => (await seen(first, each)).status === 'completed', 'the video is made');
  // Of an earlier version, whose jobs ended with their process.
  await set(`status = 'in_progress', upstream_id = null, claimed_until = 'epoch'`, lost);
  await set(`expires_at = now() - interval '1 hour'`, old);
  first.upstream.script('sora', [QUEUED, DONE, CONTENT]);
  first.upstream.script('twin', { ...RUNNING, repeat: true });
  // As if the database had been out of reach of its process, which still polls, for longer than a claim.
  const both = await make(first);
  const [expired, waiting] = [await make(first, { model: 'test/twin' }), await make(first, { model: 'test/twin' })];
  for (const each of [both, expired, waiting]) await set('claimed_by = null', each);
  for (const each of [expired, waiting]) await set(`endpoint_id = 'gone'`, each);
  await set(`expires_at = now() - interval '1 hour'`, expired);
  const leaving = await startGateway(t, { ...options, target });
  leaving.upstream.script('twin', [json({ id: 'v_2', status: 'pending' })]);
  const left = await make(leaving, { model: 'test/twin' });
  await leaving.close();

  const lines: string[] = [];
  const log = createLog({ stream: { write: (line: string) => lines.push(line) } });
  const next = await startGateway(t, { ...options, target, jobs: 'now', log });
  next.upstream.script('sora', [DONE, CONTENT]);
  next.upstream.script('twin', [json({ id: 'v_2', status: 'completed', seconds: '7' }), CONTENT]);
  const end = (job: Job) =>
    until(async () => {
      const now = await seen(next, job);
      return now.status === 'in_progress' ? undefined : now;
    }, 'the job ends');
  const rowOfJob = async ({ generation_id }: Job) => {
    const found = await next.get(`/generation?id=${generation_id}`);
    return ((await found.json()) as { data: Record<string, unknown> }).data;
  };
  assert.match((await end(lost)).error!, /stopped/);
  const taken = await end(left);
  assert.deepEqual([taken.status, taken.usage!.cost], ['completed', 0.7]);
  const film = await next.get(`/videos/${left.id}/content`);
  assert.equal(film.status, 200, film.ok ? '' : await film.text());
  assert.deepEqual(Buffer.from(await film.arrayBuffer()), FILM);
  const row = await rowOfJob(left);
  assert.deepEqual([row['total_cost'], row['upstream_id'], row['cancelled']], [0.7, 'v_2', false]);
  assert.equal((await end(both)).status, 'completed');
  await until(() => {
    first.clock.jump(5_000);
    return first.upstream.requests('sora').length === 3;
  }, 'the first process has the video, too');
  assert.equal((await rowOfJob(both))['total_cost'], 0.8);
  assert.equal((await end(expired)).status, 'failed');
  const estimated = await rowOfJob(expired);
  assert.deepEqual([estimated['total_cost'], estimated['finish_reason']], [0.8, 'error']);
  await until(() => lines.some((line) => line.includes(waiting.id)), 'the log names the job without an endpoint');
  assert.equal((await seen(next, waiting)).status, 'in_progress');
  const holds = await sql.query('select id from spend_holds');
  assert.deepEqual(holds.rows, [{ id: waiting.generation_id }]);
  await until(async () => {
    const { rows } = await sql.query('select blob_id from videos where id = $1', [old.id]);
    return rows[0].blob_id === null;
  }, 'the content is dropped');
});

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const frame = (url: string) => ({ type: 'image_url', image_url: { url }, frame_type: 'first_frame' });

test('the openai SDK sends a reference as an upload or as a data URL', async () => {
  const png = Buffer.from(PIXEL.split(',')[1]!, 'base64');
  for (const input_reference of [await OpenAI.toFile(png, 'a.png'), { image_url: PIXEL }]) {
    script(QUEUED, DONE, CONTENT);
    await openai.videos.create({ model: 'test/sora' as never, prompt: 'a dog', input_reference });
    const { body, headers } = gateway.upstream.requests('sora').findLast(({ method }) => method === 'POST')!;
    const type = { 'content-type': headers['content-type']! };
    const sent = await new Response(body as Buffer<ArrayBuffer>, { headers: type }).formData();
    const image = sent.get('input_reference') as File;
    assert.deepEqual(Buffer.from(await image.arrayBuffer()), png);
  }
  const byId = openai.videos.create({
    model: 'test/sora' as never,
    prompt: 'a',
    input_reference: { file_id: 'file-1' },
  });
  await assert.rejects(byId, { status: 400, message: /^400 input_reference\[file_id\] is not supported/ });
});

test('bad input names the field', async () => {
  for (const [body, field] of [
    [{ prompt: '' }, 'prompt'],
    [{ duration: 0 }, 'duration'],
    [{ size: 'large' }, 'size'],
    [{ previous_job_id: 'vid_1' }, 'previous_job_id'],
    [{ seconds: '4' }, 'seconds'],
    [{ input_reference: 'x' }, 'input_reference'],
    [{ upscale_factor: 0 }, 'upscale_factor'],
    [{ resolution: '720p' }, 'resolution'],
    [{ frame_images: [frame('https://a.b/c')] }, 'frame_images[0].image_url.url'],
    [{ frame_images: [frame(PIXEL), frame(PIXEL)] }, 'frame_images'],
    [{ frame_images: [{ ...frame(PIXEL), frame_type: 'middle' }] }, 'frame_images[0].frame_type'],
    [{ generate_audio: true }, 'generate_audio'],
    [
      { input_references: [{ type: 'image_url', image_url: { url: 'https://a.b/c' } }] },
      'input_references[0].image_url.url',
    ],
  ] as const) {
    const response = await gateway.post('/videos', { model: 'test/sora', prompt: 'a', ...body });
    const { error } = (await response.json()) as { error: { message: string } };
    assert.equal(response.status, 400, error.message);
    assert.ok(error.message.includes(field), error.message);
  }
  const job = await create({ model: 'test/simulated' });
  assert.equal((await gateway.get(`/videos/${job.id}/content?index=1`)).status, 400);
  assert.equal((await gateway.get('/videos/vid_none')).status, 404);
});
