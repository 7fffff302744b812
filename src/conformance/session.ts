/** Requests of the cases: through the gateway to the scripted upstreams, with what happened at both ends. */
import type { Clock } from '../base/clock.ts';
import { type Reply, type Sent, send } from './client.ts';
import { eventsOf } from './events.ts';
import { chat } from './formats/chat.ts';
import { type Arrived, type Asked, Broken, type FormatName, type Heard, type WireFormat } from './formats/dialogue.ts';
import { messages } from './formats/messages.ts';
import { responses } from './formats/responses.ts';
import type { GatewayKind, UpstreamName } from './gateways.ts';
import { type Play, type Received, type Script, tagOf, type Upstreams } from './upstreams.ts';

export const FORMATS: Readonly<Record<FormatName, WireFormat>> = { chat, messages, responses };

/** The format of an upstream. */
export function formatOf(upstream: UpstreamName): WireFormat {
  return FORMATS[upstream === 'fallback' ? 'chat' : upstream];
}

export interface Place {
  client: FormatName;
  upstream: UpstreamName;
  streamed: boolean;
}

interface SessionParts {
  gateway: GatewayKind;
  /** With the path below which the formats are. */
  baseUrl: string;
  key: string;
  upstreams: Upstreams;
  upstreamsUrl: string;
  clock: Clock;
}

export interface Exchange {
  reply: Reply;
  /** What the client read; undefined if the reply is no answer, or breaks its format. */
  heard: Heard | undefined;
  /** How the reply breaks its format. */
  broken: string | undefined;
  received: readonly Received[];
}

interface Asking {
  /** `tag` has to be part of the last text of the user. */
  asked(tag: string): Asked;
  script(received: Received, attempt: number): Script;
  onText?: Sent['onText'];
  /** Called when the upstream has a request. */
  onArrival?(received: Received, leave: () => void): void;
  /** Sent instead of the body. */
  body?(body: Record<string, unknown>): string;
  key?: string;
}

export class Session {
  readonly clock: Clock;
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.clock = parts.clock;
  }

  async ask({ client, upstream, streamed }: Place, asking: Asking): Promise<Exchange> {
    const { gateway, baseUrl, upstreams, upstreamsUrl, clock } = this.#parts;
    const format = FORMATS[client];
    const left = Promise.withResolvers<void>();
    const received: Received[] = [];
    const arrived = () => asking.onArrival?.(received.at(-1)!, left.resolve);
    const served = formatOf(upstream).path;
    const script: Play['script'] = (each, attempt) =>
      each.path.endsWith(served) ? asking.script(each, attempt) : jsonScript(NO_SUCH_PATH, 404);
    const play: Play = { script, received, arrived };
    const id = upstreams.add(play);
    const request = format.request(asking.asked(tagOf(id)), gateway.models[upstream], streamed);
    const body = { ...request, ...gateway.body?.(upstream) };
    try {
      const reply = await send({
        url: baseUrl + format.path,
        headers: gateway.headers(upstream, upstreamsUrl, asking.key ?? this.#parts.key),
        body: asking.body?.(body) ?? JSON.stringify(body),
        ...{ clock, leaves: left.promise, ...(asking.onText && { onText: asking.onText }) },
      });
      return { reply, received, ...read(format, streamed, reply) };
    } finally {
      upstreams.remove(id);
    }
  }
}

function read(format: WireFormat, streamed: boolean, { status, text }: Reply): Pick<Exchange, 'heard' | 'broken'> {
  if (status !== 200) return { heard: undefined, broken: undefined };
  try {
    const heard = streamed ? format.readStream(eventsOf(text)) : format.readWhole(JSON.parse(text));
    return { heard, broken: undefined };
  } catch (error) {
    if (error instanceof SyntaxError) return { heard: undefined, broken: 'the answer is not JSON' };
    if (error instanceof Broken) return { heard: undefined, broken: error.message };
    throw error;
  }
}

/** The request as it arrived at the upstream, of the last attempt. */
export function arrivedOf({ received }: Exchange, upstream: UpstreamName): Arrived {
  return formatOf(upstream).arrived(received.at(-1)?.body);
}

/** The reply of a service of one format to a request of another. */
const NO_SUCH_PATH = { error: { message: 'this service has no such path', type: 'invalid_request_error' } };
const JSON_TYPE = { 'content-type': 'application/json' };
export const STREAM_TYPE = { 'content-type': 'text/event-stream' };

export function jsonScript(body: object, status = 200, headers: Readonly<Record<string, string>> = {}): Script {
  return { status, headers: { ...JSON_TYPE, ...headers }, steps: [JSON.stringify(body)] };
}
