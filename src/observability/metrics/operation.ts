/** `GET /metrics`: for management keys and the scraper's own token, or open to all if so configured. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { MetricsSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import type { Operation } from '../../http/operation.ts';

const OPEN_METRICS = 'application/openmetrics-text';

export interface MetricsOperationParts {
  settings: MetricsSettings;
  /** The metrics of all processes. @param takesOpenMetrics the reader understands that format too */
  read(takesOpenMetrics: boolean): Promise<{ text: string; contentType: string }>;
}

/** @param parts read at each request */
export function metricsOperation<C>(parts: () => MetricsOperationParts): Operation<C> {
  return {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    root: true,
    summary: "The gateway's metrics for Prometheus; contains no prompts, keys or user names",
    tag: 'Health',
    access: MANAGEMENT,
    opens(headers) {
      const { access, token } = parts().settings;
      if (access === 'open') return true;
      return access === 'key' && token !== null && presents(headers, token.reveal());
    },
    errors: [404],
    replies: { 200: { description: 'The exposition format', contentType: 'text/plain', texts: [OPEN_METRICS] } },
    async handle({ headers, response }) {
      const { settings, read } = parts();
      if (settings.access === 'off') throw new GatewayError('not_found', 'metrics are turned off');
      const { text, contentType } = await read(headers.accept?.includes(OPEN_METRICS) === true);
      if (response.destroyed) return;
      response.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
      response.end(text);
    },
  };
}

function presents({ authorization = '' }: IncomingHttpHeaders, token: string): boolean {
  const presented = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  return presented !== undefined && timingSafeEqual(digest(presented), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
