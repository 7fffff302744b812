/**
 * Services with jobs at `/videos`: created, polled until they end, and their content fetched. OpenAI's format
 * (platform.openai.com/docs/api-reference/videos) and the public one differ in the request and in names of states.
 */
import { stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { type CallPlan, type DirectTarget, inputUsage, type Outgoing, type Reply, type Step } from '../direct/index.ts';
import { malformed, readFields } from '../direct/json-reply.ts';
import { encodeMultipart } from '../direct/multipart.ts';
import { optionsFor } from '../direct/options.ts';
import type { VideoAdapter } from './index.ts';
import type { VideoRequest } from './request.ts';

export interface MadeVideo {
  bytes: Buffer;
  mediaType: string;
}

const PATH = '/videos';
const LOOK_MS = 5_000;
const AGAIN = { times: 5, afterMs: LOOK_MS };
/** Services name jobs freely; what would change the path is not an id. */
const JOB_ID = /^[\w.:-]{1,256}$/;
const ENDED = new Set(['failed', 'cancelled', 'canceled', 'expired']);
/** Codes of jobs that failed for their content, such as `moderation_blocked`. */
const REFUSED = /moderation|content_policy|content_filter|safety|sensitive/i;

export const openaiVideos: VideoAdapter = {
  start: (request, target) => job(request, openaiCall(request, target)),
  resume: (request, id) => poll(request, id),
  decodeFailure,
};

export const publicVideos: VideoAdapter = {
  start: (request, target) => job(request, publicCall(request, target)),
  resume: (request, id) => poll(request, id),
  decodeFailure,
};

/** @throws Uncarried for what the service does not have */
function openaiCall(request: VideoRequest, target: DirectTarget): Outgoing {
  if (request.previousId !== undefined) return remixCall(request, request.previousId);
  const { prompt, duration, size, aspectRatio, resolution, seed, references, extras } = request;
  const missing = { aspect_ratio: aspectRatio, resolution, seed, ...extras };
  const [name] = Object.entries(missing).flatMap(([key, value]) => (value === undefined ? [] : [key]));
  if (name !== undefined) throw new Uncarried(name, 'the service takes size and duration only');
  if (references.length > 1) throw new Uncarried('input_references', 'the service takes one image');
  const fields = {
    ...Object.fromEntries(
      Object.entries(optionsFor(request, target, ['quality'])).map(([key, value]) => [key, String(value)]),
    ),
    model: target.model,
    prompt,
    ...(duration !== undefined && { seconds: String(duration) }),
    ...(size !== undefined && { size }),
  };
  const files = references.map((url) => {
    const [head = '', data = ''] = url.split(',', 2);
    const mediaType = head.slice('data:'.length, -';base64'.length);
    const filename = `reference.${mediaType.replace(/^image\/|\+.*$/g, '')}`;
    return { name: 'input_reference', filename, mediaType, bytes: Buffer.from(data, 'base64') };
  });
  return { path: PATH, ...encodeMultipart(fields, files) };
}

/** A remix takes a new prompt only; all else is that of the original video. @throws Uncarried for other members */
function remixCall({ prompt, references, extras, ...settings }: VideoRequest, previousId: string): Outgoing {
  const { duration, size, aspectRatio: aspect_ratio, resolution, seed } = settings;
  const given = { duration, size, aspect_ratio, resolution, seed, ...extras };
  const [name] = Object.entries(given).flatMap(([key, value]) => (value === undefined ? [] : [key]));
  const other = references.length > 0 ? 'input_references' : name;
  if (other !== undefined) throw new Uncarried(other, 'a remix keeps what the original video has');
  return { path: `${pathOf(previousId)}/remix`, body: stringifyJson({ prompt }) };
}

function publicCall(request: VideoRequest, target: DirectTarget): Outgoing {
  const { prompt, duration, size, aspectRatio, resolution, seed, previousId, references, extras, options } = request;
  const members = {
    ...extras,
    ...{ model: target.model, prompt, duration, size, aspect_ratio: aspectRatio, resolution, seed },
    ...(previousId !== undefined && { previous_job_id: previousId }),
    ...(references.length > 0 && {
      input_references: references.map((url) => ({ type: 'image_url', image_url: { url } })),
    }),
    ...(Object.keys(options).length > 0 && { provider: { options } }),
    user: target.user,
  };
  return { path: PATH, body: stringifyJson(members) };
}

function job(request: VideoRequest, call: Outgoing): CallPlan<MadeVideo> {
  return { call, read: (reply) => state(reply, request) };
}

/** A job that fails costs nothing. */
function state(reply: Reply, request: VideoRequest): Step<MadeVideo> {
  const object = readFields(reply);
  if ('failure' in object) return object;
  const { id, status, error } = object.value;
  if (typeof id !== 'string' || !JOB_ID.test(id) || /^\.+$/.test(id))
    return { failure: malformed('a job without an id') };
  if (ENDED.has(textOf(status))) {
    const told = textOf(error) || textOf(fieldsOf(error)['message']) || `the job has ${textOf(status)}`;
    // What clients ask for must not put the endpoint into cooldown for others.
    const isTheirs = REFUSED.test(textOf(fieldsOf(error)['code']) || textOf(fieldsOf(error)['type']));
    return { failure: { kind: isTheirs ? 'content_filter' : 'server', status: isTheirs ? 400 : 502, message: told } };
  }
  if (status === 'completed') {
    const usage = usageOf(object.value, request);
    return {
      next: {
        call: { method: 'GET', path: `${pathOf(id)}/content`, body: '' },
        share: 0,
        again: AGAIN,
        read: (content) => madeOf(content),
      },
      upstreamId: id,
      ...(usage && { usage }),
    };
  }
  return { next: poll(request, id), upstreamId: id, afterMs: LOOK_MS, accepted: true };
}

function poll(request: VideoRequest, id: string): CallPlan<MadeVideo> {
  return {
    call: { method: 'GET', path: pathOf(id), body: '' },
    share: 0,
    again: AGAIN,
    read: (looked) => state(looked, request),
  };
}

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** Undefined if neither the service nor the request states the length of the video; then it is estimated. */
function usageOf(value: Fields, { duration }: VideoRequest): Usage | undefined {
  const told = Number(value['seconds'] ?? value['duration']);
  const seconds = told > 0 && told < 86_400 ? Math.ceil(told) : duration;
  return seconds === undefined ? undefined : { ...inputUsage(0), outputSeconds: seconds };
}

function madeOf({ headers, body }: Reply): Step<MadeVideo> {
  const told = headers['content-type'];
  const mediaType = told?.startsWith('video/') ? told : 'video/mp4';
  if (body.length === 0) return { failure: { ...malformed('an empty video'), kind: 'empty' } };
  return { answer: { bytes: body, mediaType } };
}
