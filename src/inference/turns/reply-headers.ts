/** Reads the headers of an upstream's response. Pure. */
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { SpokenFormat } from '../../formats/conversation/format.ts';

export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType);
}

export function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^text\/event-stream\b/i.test(contentType);
}

/** Whether a reply is a medium, judged by its type. */
export function isMedium(contentType: string | undefined): boolean {
  return contentType === undefined || /^(?:audio|video)\/|^(?:application|binary)\/octet-stream/i.test(contentType);
}

/** Seconds from `retry-after-ms` or `retry-after`. */
function retryAfter(headers: Record<string, string>): number | undefined {
  const milliseconds = Number(headers['retry-after-ms']);
  if (milliseconds > 0) return Math.ceil(milliseconds / 1000);
  const seconds = Number(headers['retry-after']);
  return seconds > 0 ? Math.ceil(seconds) : undefined;
}

/** The failure of a response with an error status, and its retry hint. */
export function refusalOf(
  decode: SpokenFormat['decodeFailure'],
  status: number,
  body: string,
  headers: Record<string, string>,
): UpstreamFailure {
  const failure: UpstreamFailure =
    status < 400
      ? { kind: 'server', status, message: 'the upstream answered with a redirect' }
      : decode(status, body, headers);
  const hint = retryAfter(headers);
  return hint === undefined ? failure : { ...failure, retryAfterSeconds: hint };
}
