/**
 * `gatehouse conformance`: a black-box suite for any gateway. It plays the upstreams, drives the gateway as a strict client of
 * the formats chat, messages and responses, and reports what is lost in between. It shares no code with the formats of this
 * gateway, so that they cannot share a bug.
 */

import type { Clock } from '../base/clock.ts';
import { GATEWAYS } from './gateways.ts';
import { type Row, runCases } from './run.ts';
import { Session } from './session.ts';
import { Upstreams } from './upstreams.ts';

export { NO_RESPONSE } from './cases/case.ts';
export { GATEWAYS } from './gateways.ts';
export { countsOf, jsonOf, markdownOf } from './report.ts';

interface ConformanceOptions {
  /** A name of `GATEWAYS`. */
  gateway: string;
  baseUrl: string;
  key: string;
  /** Of the scripted upstreams, as the gateway is configured. */
  port: number;
  only?: string;
  clock: Clock;
  progress?(done: number, all: number): void;
}

export function upstreamsUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Rejects if the port of the upstreams is taken. */
export async function checkConformance(options: ConformanceOptions): Promise<Row[]> {
  const upstreams = new Upstreams();
  try {
    const port = await upstreams.listen(options.port).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`the scripted upstreams cannot listen on port ${options.port}: ${error.code}`);
    });
    const gateway = GATEWAYS[options.gateway]!;
    const { key, clock, only = '' } = options;
    const baseUrl = withPath(options.baseUrl, gateway.basePath);
    const session = new Session({ gateway, baseUrl, key, upstreams, upstreamsUrl: upstreamsUrl(port), clock });
    return await runCases(session, { only, ...(options.progress && { progress: options.progress }) });
  } finally {
    upstreams.close();
  }
}

function withPath(baseUrl: string, basePath: string): string {
  const url = new URL(baseUrl);
  const path = url.pathname.replace(/\/+$/, '');
  return url.origin + (path === '' ? basePath : path);
}
