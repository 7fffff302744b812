/** The operations of `/videos`. */

import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { readDocument } from '../base/json.ts';
import { textFromPrice } from '../base/money.ts';
import { checkCallbackUrl, currentSecret } from '../callbacks/index.ts';
import type { Model } from '../catalog/index.ts';
import { video, videoFormSchema, videoOfForm } from '../formats/video/index.ts';
import { ANY_KEY, INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import { sendDownload } from '../http/download.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { publicUrl } from '../http/public-url.ts';
import { type AcceptedRequest, acceptExchange, INFERENCE_ERRORS, type InferenceLimits } from '../inference/index.ts';
import type { Changes } from '../storage/database.ts';
import { videoReply } from './reply.ts';
import { VideoRunner, type VideoRunnerParts } from './run.ts';
import * as schema from './schema.ts';
import { deleteVideo, findVideo, listVideos, type VideoJob } from './store.ts';

export interface VideoParts extends VideoRunnerParts {
  changes: Changes;
  runner: VideoRunner;
}

export function createVideos(parts: VideoRunnerParts & Pick<VideoParts, 'changes'>): VideoParts {
  return { ...parts, runner: new VideoRunner(parts) };
}

const TAG = 'Videos';

export function videoOperations(parts: VideoParts, limits: InferenceLimits): Operation<Caller>[] {
  return [
    ...[listModels(parts), create(parts, limits), remix(parts, limits)],
    ...[list(parts), show(parts), remove(parts), content(parts)],
  ];
}

function create(parts: VideoParts, limits: InferenceLimits): Operation<Caller> {
  return {
    id: 'createVideo',
    method: 'POST',
    path: '/videos',
    summary: 'Make a video from a prompt, as a job to poll',
    tag: TAG,
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    body: {
      schema: video.schema,
      maxBytes: limits.inferenceBodyBytes,
      multipart: { schema: videoFormSchema, toBody: videoOfForm },
    },
    replies: { 202: { description: 'The job', schema: schema.VideoReply } },
    errors: [...INFERENCE_ERRORS, 524],
    handle: (exchange) => begin(exchange, acceptExchange(exchange, video, parts.inference), parts),
  };
}

function remix(parts: VideoParts, limits: InferenceLimits): Operation<Caller> {
  return {
    id: 'remixVideo',
    method: 'POST',
    path: '/videos/{jobId}/remix',
    summary:
      'Change a completed video with a new prompt, in a new job; the same as `previous_job_id` of `POST /videos`',
    tag: TAG,
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    params: schema.VideoParams,
    body: { schema: schema.RemixRequest, maxBytes: limits.inferenceBodyBytes },
    replies: { 202: { description: 'The job', schema: schema.VideoReply } },
    errors: [...INFERENCE_ERRORS, 409, 524],
    async handle(exchange) {
      const { id, model: asked, status, endpointId } = await existing(exchange, parts);
      if (status !== 'completed') throw refusal(`the job has no video: it is ${status}`, 409);
      const { models } = parts.inference.catalog();
      // A fallback model may have made the video.
      const model = models.find(({ endpoints }) => endpoints.some((each) => each.id === endpointId))?.id ?? asked;
      const body = { model, prompt: exchange.document!.member('prompt'), previous_job_id: id };
      const document = readDocument(Buffer.from(JSON.stringify(body)));
      await begin(exchange, acceptExchange(exchange, video, parts.inference, document), parts);
    },
  };
}

type VideoRequest = AcceptedRequest<typeof video>;

async function begin(exchange: Exchange<Caller>, accepted: VideoRequest, parts: VideoParts): Promise<void> {
  const { runner, callbacks } = parts;
  const url = accepted.document.member('callback_url') ?? undefined;
  if (url !== undefined) {
    checkCallbackUrl(url, callbacks);
    // Deliveries need it, and a key that cannot be used should be known now.
    await currentSecret(callbacks, exchange.caller.workspaceId, authorOf(exchange));
  }
  const callback = typeof url === 'string' ? { url, baseUrl: publicUrl(exchange) } : undefined;
  const job = await runner.begin(accepted, callback, await previousOf(accepted, parts));
  exchange.reply(202, reply(job, exchange, parts), { 'x-generation-id': job.generationId });
}

function show(parts: VideoParts): Operation<Caller> {
  return {
    id: 'getVideo',
    method: 'GET',
    path: '/videos/{jobId}',
    summary: 'Show a video job',
    tag: TAG,
    access: INFERENCE,
    params: schema.VideoParams,
    errors: [404],
    replies: ok('The job', schema.VideoReply),
    async handle(exchange) {
      exchange.reply(200, reply(await existing(exchange, parts), exchange, parts));
    },
  };
}

const USUAL_PAGE = 20;
const JOB_ID = /^vid_[0-9a-f]{32}$/;

function list(parts: VideoParts): Operation<Caller> {
  return {
    id: 'listVideos',
    method: 'GET',
    path: '/videos',
    summary: 'List the video jobs of the workspace, newest first',
    tag: TAG,
    access: INFERENCE,
    query: schema.ListQuery,
    replies: ok('One page', schema.VideoListReply),
    async handle(exchange) {
      const { after, limit = USUAL_PAGE, order } = exchange.query as { after?: string; limit?: number; order?: string };
      // It may be deleted by now: clients delete what they list.
      if (after !== undefined && !JOB_ID.test(after)) throw invalidField('after', 'must be the id of a video job');
      const page = { after, limit: limit + 1, ascending: order === 'asc' };
      const found = await listVideos(parts.database, exchange.caller.workspaceId, page);
      const jobs = found.slice(0, limit);
      exchange.reply(200, {
        object: 'list',
        data: jobs.map((job) => reply(job, exchange, parts)),
        first_id: jobs[0]?.id ?? null,
        last_id: jobs.at(-1)?.id ?? null,
        has_more: found.length > limit,
      });
    },
  };
}

function remove(parts: VideoParts): Operation<Caller> {
  return {
    id: 'deleteVideo',
    method: 'DELETE',
    path: '/videos/{jobId}',
    summary: 'Delete a video job that has ended, with its content',
    tag: TAG,
    access: INFERENCE,
    params: schema.VideoParams,
    errors: [404, 409],
    replies: ok('The job is gone', schema.VideoDeleted),
    async handle(exchange) {
      const { id } = await existing(exchange, parts);
      const { workspaceId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const gone = await deleteVideo(tx, id, workspaceId);
        if (gone === undefined) throw refusal('the video is still being made', 409);
        if (gone.blobId !== null) await parts.blobs.drop(tx, gone.blobId);
        await changed({ action: 'video.deleted', resourceType: 'video', resourceId: id, workspaceId });
      });
      exchange.reply(200, { id, object: 'video.deleted', deleted: true });
    },
  };
}

function content(parts: VideoParts): Operation<Caller> {
  return {
    id: 'getVideoContent',
    method: 'GET',
    path: '/videos/{jobId}/content',
    summary: 'Download the video of a job',
    tag: TAG,
    access: INFERENCE,
    params: schema.VideoParams,
    query: schema.ContentQuery,
    errors: [404, 409, 410, 416],
    replies: {
      200: { description: 'The video', contentType: 'video/*' },
      206: { description: 'The byte range of the header `Range`', contentType: 'video/*' },
      304: { description: 'The content is the one of `If-None-Match`' },
    },
    async handle(exchange) {
      const job = await existing(exchange, parts);
      const { blobId } = job;
      if ((exchange.query['index'] ?? 0) !== 0) throw invalidField('index', 'must be 0: a job makes one video');
      if (isExpired(job, parts)) throw refusal('the video has expired', 410);
      if (blobId === null) throw refusal(`the job has no video: it is ${job.status}`, 409);
      const { bytes, sha256 } = await parts.blobs.find(blobId);
      await sendDownload(exchange, {
        bytes,
        checksum: sha256,
        headers: { 'Content-Type': job.mediaType ?? 'video/mp4', 'X-Content-Type-Options': 'nosniff' },
        read: (range) => parts.blobs.read(blobId, range),
      });
    },
  };
}

function listModels(parts: VideoParts): Operation<Caller> {
  return {
    id: 'listVideoModels',
    method: 'GET',
    path: '/videos/models',
    summary: 'List video models',
    tag: TAG,
    access: ANY_KEY,
    replies: ok('The models', schema.VideoModelsReply),
    handle(exchange) {
      exchange.reply(200, { data: parts.inference.catalog().models.flatMap(modelView) });
    },
  };
}

/** Unknown facts of a model are null. */
function modelView({ id, name, facts, endpoints }: Model): Record<string, unknown>[] {
  const serving = endpoints.filter(
    ({ provider, outputModalities }) => provider.kind.video !== undefined && outputModalities?.includes('video'),
  );
  if (serving.length === 0) return [];
  const second = serving.find(({ pricing }) => pricing?.outputSecond !== undefined)?.pricing?.outputSecond;
  const unknown = {
    ...{ creativity: null, generate_audio: null, seed: null, supported_aspect_ratios: null, supported_durations: null },
    ...{ supported_frame_images: null, supported_resolutions: null, supported_sizes: null, upscale_factor: null },
  };
  return [
    {
      ...{ id, canonical_slug: facts?.canonical_slug ?? id, name, created: facts?.created ?? 0 },
      allowed_passthrough_parameters: [],
      pricing_skus: second === undefined ? null : { output_second: textFromPrice(second) },
      ...unknown,
    },
  ];
}

/** The job that a request continues. @throws GatewayError 400 */
async function previousOf({ document, caller }: VideoRequest, { database }: VideoParts): Promise<VideoJob | undefined> {
  const id = document.member('previous_job_id') ?? undefined;
  if (typeof id !== 'string') return undefined;
  const job = JOB_ID.test(id) ? await findVideo(database, id, caller.workspaceId) : undefined;
  // Jobs of earlier versions do not know their provider.
  if (job?.status === 'completed' && job.upstreamId !== null) return job;
  throw invalidField('previous_job_id', 'must be the id of a completed video job of the workspace');
}

async function existing({ params, caller }: Exchange<Caller>, { database }: VideoParts): Promise<VideoJob> {
  const job = await findVideo(database, params['jobId']!, caller.workspaceId);
  if (job === undefined) throw new GatewayError('not_found', 'there is no video job with this id', { path: 'jobId' });
  return job;
}

function isExpired({ expiresAt }: VideoJob, { clock }: VideoParts): boolean {
  return expiresAt.getTime() <= clock.now();
}

function reply(job: VideoJob, exchange: Exchange, parts: VideoParts): Record<string, unknown> {
  return videoReply(job, publicUrl(exchange), isExpired(job, parts));
}

function refusal(message: string, status: number): GatewayError {
  return new GatewayError('invalid_request', message, { status });
}
