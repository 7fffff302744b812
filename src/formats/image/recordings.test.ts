/** Recorded replies of services, read by their adapters. The expected values were taken from the recordings by hand. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import type { Adapter, Step } from '../direct/index.ts';
import { googleImages } from './google.ts';
import { openaiImages } from './openai.ts';
import type { ImageAnswer } from './reply.ts';
import type { ImageRequest } from './request.ts';

const REQUEST: ImageRequest = {
  prompt: 'x',
  n: 2,
  size: {},
  references: [],
  referenceCount: 0,
  events: 'image_generation',
  extras: {},
  options: {},
};

const found = new Map(recordings(['images']).map(({ id, bytes }) => [id, bytes]));
const recording = (name: string) => found.get(name);

function read(adapter: Adapter<ImageRequest, ImageAnswer>, model: string, body: Buffer): Step<ImageAnswer> {
  const target = {
    model,
    user: 'u',
    stream: false,
    contextLength: null,
    providerId: 'p',
    stamp: { id: 'gen-1', model: 'a/b', provider: 'P', created: 7, usage: 'none' as const },
    baseUrl: 'https://p.example',
  };
  return adapter.start(REQUEST, target).read({ status: 200, headers: {}, body });
}

const OPENAI = ['image-gen-metrics', 'image-gen-metrics-2', 'image-gen-metrics-3', 'images-edits-post-51c64d82'];

for (const name of OPENAI) {
  const body = recording(`openai/images-${name}.json`);
  test(`OpenAI: ${name} has one image URL, which is fetched`, { skip: corpusMissing }, () => {
    const step = read(openaiImages, 'dall-e-2', body!);
    assert.ok('fetch' in step);
    assert.equal(step.fetch.length, 1);
    assert.match(step.fetch[0]!, /^https:\/\/oaidalleapiprodscus\.blob\.core\.windows\.net\/private\//);
    const done = step.withMedia(new Map([[step.fetch[0]!, { mediaType: 'image/png', data: 'AAAA' }]]));
    assert.ok('answer' in done);
    assert.deepEqual(done.answer.images, [{ data: 'AAAA', mediaType: 'image/png' }]);
    assert.equal(done.usage?.outputImages, 1);
  });
}

for (const name of ['image-gen-metrics', 'image-edit-functionality-with-remote-urls-rejects-edits-with-a-url-hav']) {
  const body = recording(`openai/images-err400-${name}.json`);
  test(`OpenAI: the error ${name} is an invalid request`, { skip: corpusMissing }, () => {
    const failure = openaiImages.decodeFailure(400, body!.toString());
    assert.equal(failure.kind, 'invalid_request');
    assert.match(failure.message, /Unknown parameter: 'quality'|Invalid image data/);
  });
}

const FILTERED = recording('vertex/images-failure-generate-images-base64-some-filtered.json');
test('Imagen: the two images that passed the filter are returned', { skip: corpusMissing }, () => {
  const step = read(googleImages, 'imagen-4.0-generate-001', FILTERED!);
  assert.ok('answer' in step);
  assert.deepEqual(
    step.answer.images.map(({ mediaType }) => mediaType),
    ['image/png', 'image/png'],
  );
  // 1,024 pixels per side, according to the image header.
  assert.deepEqual([step.usage?.outputImages, step.usage?.outputMegapixels], [2, 2]);
});

const ELSEWHERE = recording('vertex/images-failure-generate-images-gcs-some-filtered.json');
test('Imagen: images in a bucket are a failure', { skip: corpusMissing }, () => {
  const step = read(googleImages, 'imagen-4.0-generate-001', ELSEWHERE!);
  assert.ok('failure' in step);
});
