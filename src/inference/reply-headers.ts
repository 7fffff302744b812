/** What the headers of an upstream's reply say. Pure. */

export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType);
}

export function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^text\/event-stream\b/i.test(contentType);
}

/** Seconds from `retry-after-ms` or `retry-after`. */
export function retryAfter(headers: Record<string, string>): number | undefined {
  const milliseconds = Number(headers['retry-after-ms']);
  if (milliseconds > 0) return Math.ceil(milliseconds / 1000);
  const seconds = Number(headers['retry-after']);
  return seconds > 0 ? Math.ceil(seconds) : undefined;
}
