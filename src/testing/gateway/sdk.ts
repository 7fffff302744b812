/**
 * What the tests of client libraries share: a gateway in front of one upstream of each format, the cells of a table library
 * x feature x upstream, and the upstream's script. A library is used as its users do: unmodified, with a base URL and a key.
 */
import { after, type TestContext, test } from 'node:test';
import { answerOf, type Format, streamOf, type Told } from '../upstream/answers.ts';
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
export type Json = any;

/** Formats of the upstream, each with the model `test/<format>`. */
export const UPSTREAMS: readonly Format[] = ['chat', 'messages'];

export const HELLO = [{ role: 'user' as const, content: 'hi' }];
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
export const ANSWER_SCHEMA = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const }, degrees: { type: 'number' as const } },
  required: ['city', 'degrees'],
  additionalProperties: false as const,
};
/** What an upstream reports, and what it costs at the prices of `gateway.ts`. */
export const USAGE = { input: 12, cacheRead: 5, cacheWrite: 3, output: 7, reasoning: 2 };
export const USAGE_COST = 12 * 3e-6 + 5 * 0.3e-6 + 3 * 3.75e-6 + 7 * 15e-6;

export interface SdkBench {
  readonly gateway: Gateway;
  /** A test for each format of the upstream. */
  cell(sdk: string, feature: string, run: (format: Format, t: TestContext) => Promise<void>): void;
  /** Sets the upstream's answers; yields a reader of the bodies that it got since. */
  script(format: Format, stream: boolean, ...turns: Told[]): () => Json[];
}

export async function startBench(options: GatewayOptions = {}): Promise<SdkBench> {
  const gateway = await startGateway(
    { after: (close) => after(close as () => Promise<void>) },
    { providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' } }, ...options },
  );
  return {
    gateway,
    cell(sdk, feature, run) {
      for (const format of UPSTREAMS) test(`${sdk} | ${feature} | ${format} upstream`, (t) => run(format, t));
    },
    script(format, stream, ...turns) {
      const before = gateway.upstream.requests(format).length;
      gateway.upstream.script(
        format,
        turns.map((told) => answerOf(format, stream, told)),
      );
      return () =>
        gateway.upstream
          .requests(format)
          .slice(before)
          .map(({ json }) => json);
    },
  };
}

/** A streamed answer that has begun and says nothing more; `end` as for any answer. */
export function begun(format: Format, end: 'stall' | 'reset' | 'close', ...further: string[]) {
  const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 5) as string[];
  return streamOf([...events, ...further], { end });
}

/** What a call that must fail throws. */
export async function thrownBy(run: () => PromiseLike<unknown>): Promise<Json> {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error('the call succeeded');
}

/** Lets the test's timers of `ms` end at once. @returns how many there were */
export function skipWaits(t: TestContext, ms: number): () => number {
  const { setTimeout: start } = globalThis;
  let count = 0;
  const skip = (run: () => void, delay?: number, ...args: []) => {
    if (delay === ms) count += 1;
    return start(run, delay === ms ? 0 : delay, ...args);
  };
  t.mock.method(globalThis, 'setTimeout', skip as typeof setTimeout);
  return () => count;
}
