/** GET /metrics: for whoever has a management key or the scraper's own token, or for everybody where it is set so. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { MetricsSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Operation } from '../../http/operation.ts';

export interface MetricsOperationParts {
  settings: MetricsSettings;
  /** The text of all processes. */
  read(): Promise<{ text: string; contentType: string }>;
}

/** @param parts read when a request comes */
export function metricsOperation<C>(parts: () => MetricsOperationParts): Operation<C> {
  return {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    root: true,
    summary: "The gateway's own figures for Prometheus; no prompts, keys or names of users",
    tag: 'Health',
    access: 'management',
    opens(headers) {
      const { access, token } = parts().settings;
      if (access === 'open') return true;
      return access === 'key' && token !== null && brings(headers, token.reveal());
    },
    errors: [404],
    replies: { 200: { description: 'The exposition format', contentType: 'text/plain' } },
    async handle({ response }) {
      const { settings, read } = parts();
      if (settings.access === 'off') throw new GatewayError('not_found', 'metrics are switched off');
      const { text, contentType } = await read();
      if (response.destroyed) return;
      response.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
      response.end(text);
    },
  };
}

function brings({ authorization = '' }: IncomingHttpHeaders, token: string): boolean {
  const brought = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  return brought !== undefined && timingSafeEqual(digest(brought), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
