/** Images of the three clouds: each asked below its own address, in the form that its own documentation gives. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawn, JPEG, json, made, make, PNG, refused, row, sent, upstream } from './scene.ts';

const drawing = { image_url: { url: `data:image/png;base64,${PNG}` }, type: 'image_url' };

test('Nova Canvas makes exactly the pixels that are asked for, at the price of its quality', async () => {
  upstream.script('canvas', [json({ images: [PNG, PNG], error: null })]);
  const body = await made(
    await make('canvas', { size: '2048x2048', quality: 'max', n: 2, seed: 9, output_format: 'png' }),
  );
  assert.deepEqual(body.data, [
    { b64_json: PNG, media_type: 'image/png' },
    { b64_json: PNG, media_type: 'image/png' },
  ]);
  assert.equal(body.usage['cost'], 0.16);
  const { path, json: asked } = sent('canvas');
  assert.equal(path, '/model/amazon.nova-canvas-v1%3A0/invoke');
  assert.deepEqual(asked, {
    taskType: 'TEXT_IMAGE',
    textToImageParams: { text: 'Earth' },
    imageGenerationConfig: { numberOfImages: 2, width: 2048, height: 2048, quality: 'premium', seed: 9 },
  });
  await refused(await make('canvas', { size: '1000x1000' }), 400, /sides must be 320 to 4096 and divisible by 16/);
  await refused(await make('canvas', { size: '4096x4096' }), 400, /4 megapixels/);
  await refused(await make('canvas', { background: 'transparent' }), 400, /transparent/);
  await refused(await make('canvas', { output_format: 'webp' }), 400, /webp/);
});

test('a ratio is clamped to what Nova Canvas makes, and a steep one does not fall below its shortest side', async () => {
  const sizes: unknown[] = [];
  for (const members of [
    { aspect_ratio: '1:8', resolution: '512' },
    { aspect_ratio: '21:9', resolution: '4K' },
  ]) {
    upstream.script('canvas', [json({ images: [PNG] })]);
    await made(await make('canvas', members));
    const { width, height } = (sent('canvas').json as { imageGenerationConfig: { width: number; height: number } })
      .imageGenerationConfig;
    sizes.push([width, height]);
  }
  assert.deepEqual(sizes, [
    [320, 1280],
    [3120, 1328],
  ]);
});

test('references make a variation of them, and Nova Canvas reads what is addressed to it', async () => {
  upstream.script('canvas', [json({ images: [PNG] })]);
  const provider = { options: { canvas: { similarityStrength: 0.4, negativeText: 'clouds' } } };
  await made(await make('canvas', { input_references: [drawing, drawing], provider }));
  assert.deepEqual(sent('canvas').json, {
    taskType: 'IMAGE_VARIATION',
    imageVariationParams: { text: 'Earth', negativeText: 'clouds', images: [PNG, PNG], similarityStrength: 0.4 },
    imageGenerationConfig: { numberOfImages: 1 },
  });
});

test('what the filter of Amazon left is what is charged; with nothing left the request was filtered', async () => {
  upstream.script('canvas', [
    json({ images: [PNG], error: 'Some of the images were blocked by our content filters.' }),
    json({ images: [], error: 'All of the images were blocked by our content filters.' }),
  ]);
  const body = await made(await make('canvas', { n: 2 }));
  assert.deepEqual([body.data.length, body.usage['cost']], [1, 0.04]);
  const filtered = await make('canvas');
  await refused(filtered, 400, /blocked by our content filters/);
  assert.equal((await row(filtered))['total_cost'], 0);
});

test('Titan makes the sizes of its list only', async () => {
  upstream.script('titan', [json({ images: [PNG] })]);
  await made(await make('titan', { size: '1173x640' }));
  const size = () => (sent('titan').json as { imageGenerationConfig: Record<string, unknown> }).imageGenerationConfig;
  assert.deepEqual(size(), { numberOfImages: 1, width: 1173, height: 640 });
  upstream.script('titan', [json({ images: [PNG] })]);
  await made(await make('titan', { aspect_ratio: '2:3', resolution: '512' }));
  assert.deepEqual(size(), { numberOfImages: 1, width: 384, height: 576 });
  await refused(await make('titan', { size: '1024x1040' }), 400, /1024x1024, 768x768/);
});

test("Stability's models on Bedrock take one reference as JSON, and say when they filtered", async () => {
  upstream.script('sd3', [
    json({ seeds: [5], finish_reasons: [null], images: [JPEG] }),
    json({ finish_reasons: ['Filter reason: prompt'] }),
    json({ finish_reasons: ['Inference error'] }),
  ]);
  const body = await made(await make('sd3', { input_references: [drawing], output_format: 'jpeg', seed: 5 }));
  assert.deepEqual(body.data, [{ b64_json: JPEG, media_type: 'image/jpeg' }]);
  assert.deepEqual(sent('sd3').json, {
    strength: 0.7,
    prompt: 'Earth',
    mode: 'image-to-image',
    image: PNG,
    output_format: 'jpeg',
    seed: 5,
  });
  await refused(await make('sd3'), 400, /Filter reason: prompt/);
  await refused(await make('sd3'), 502, /.*/);
  await refused(await make('sd3', { n: 2 }), 400, /one image per call/);
});

test('a Bedrock model without an image format is refused before anything is sent', async () => {
  await refused(await make('wordy'), 400, /image generation is not supported/);
  assert.equal(upstream.requests('wordy').length, 0);
});

test('an AWS exception is reported with its meaning', async () => {
  const throttled = {
    ...json({ message: 'Too many requests' }, 429),
    headers: { 'x-amzn-errortype': 'ThrottlingException' },
  };
  upstream.script('titan', [throttled]);
  await refused(await make('titan'), 429, /.*/);
});

test('a deployment of Azure is what its name says, below the preview of the v1 API', async () => {
  upstream.script('azure', [drawn(PNG)]);
  await made(
    await make('azure', { quality: 'max', background: 'transparent', output_format: 'webp', output_compression: 40 }),
  );
  const { path, json: asked } = sent('azure');
  assert.equal(path, '/openai/v1/images/generations?api-version=preview');
  const { user, ...rest } = asked as Record<string, unknown>;
  assert.equal(typeof user, 'string');
  assert.deepEqual(rest, {
    model: 'prod-gpt-image-1.5',
    prompt: 'Earth',
    n: 1,
    quality: 'high',
    background: 'transparent',
    output_format: 'webp',
    output_compression: 40,
  });
  await refused(await make('azure', { size: '1000x1000' }), 400, /1024x1024, 1536x1024, 1024x1536/);
});

test('with a dated version the deployment is asked, and references go to its edits', async () => {
  upstream.script('dated', [drawn(PNG)]);
  await made(await make('dated', { input_references: [drawing] }));
  const { path, headers } = sent('dated');
  assert.equal(path, '/openai/deployments/pictures/images/edits?api-version=2025-04-01-preview');
  assert.match(headers['content-type']!, /^multipart\/form-data/);
});

test('a stream asks for as many partial images as the client wants', async () => {
  for (const [given, asked] of [
    [0, 0],
    [3, 3],
    [null, 2],
  ]) {
    upstream.script('azure', [drawn(PNG)]);
    await (await make('azure', { stream: true, partial_images: given })).text();
    assert.equal((sent('azure').json as Record<string, unknown>)['partial_images'], asked);
  }
  await refused(await make('azure', { stream: true, partial_images: 4 }), 400, /partial_images must be at most 3/);
});

test('partial images of Azure are shown as they come', async () => {
  const event = (value: unknown) => `event: ${(value as { type: string }).type}\ndata: ${JSON.stringify(value)}\n\n`;
  upstream.script('azure', [
    {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      chunks: [
        event({ type: 'image_generation.partial_image', b64_json: JPEG, partial_image_index: 0 }),
        event({
          type: 'image_generation.completed',
          b64_json: PNG,
          usage: { input_tokens: 10, output_tokens: 100, input_tokens_details: { text_tokens: 10, image_tokens: 0 } },
        }),
      ],
    },
  ]);
  const response = await make('azure', { stream: true });
  const events = [...(await response.text()).matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
  assert.deepEqual(
    events.map(({ type }) => type),
    ['image_generation.partial_image', 'image_generation.completed'],
  );
  // 10 x 0.000005 + 100 x 0.00004
  assert.equal(events[1].usage.cost, 0.00405);
  assert.equal((sent('azure').json as Record<string, unknown>)['partial_images'], 2);
});

test('Vertex has Imagen and the Gemini models that draw below its project', async () => {
  upstream.script('vertexgen', [json({ predictions: [{ bytesBase64Encoded: PNG, mimeType: 'image/png' }] })]);
  const body = await made(
    await make('vertexgen', { aspect_ratio: '16:9', output_format: 'jpeg', output_compression: 70 }),
  );
  assert.equal(body.usage['cost'], 0.04);
  const parent = (location: string) => `/projects/cloud-project/locations/${location}/publishers/google/models`;
  assert.equal(sent('vertexgen').path, `${parent('us-central1')}/imagen-4.0-generate-001:predict`);
  assert.deepEqual(sent('vertexgen').json, {
    instances: [{ prompt: 'Earth' }],
    parameters: {
      sampleCount: 1,
      includeRaiReason: true,
      aspectRatio: '16:9',
      outputOptions: { mimeType: 'image/jpeg', compressionQuality: 70 },
    },
  });
  upstream.script('vertexdraw', [
    json({
      candidates: [
        { content: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }, finishReason: 'STOP' },
      ],
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 1120,
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1120 }],
      },
    }),
  ]);
  const picture = await made(await make('vertexdraw', { input_references: [drawing] }));
  // 10 x 0.000005 + 1120 x 0.00004
  assert.equal(picture.usage['cost'], 0.04485);
  assert.equal(sent('vertexdraw').path, `${parent('global')}/gemini-3-pro-image:generateContent`);
});
