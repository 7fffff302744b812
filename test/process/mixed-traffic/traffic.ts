/** The requests of mixed traffic: every format, streamed and not, tool loops, texts that a guardrail blocks, batches. */
import assert from 'node:assert/strict';
import { systemClock as clock, sleep } from '../../../src/base/clock.ts';
import { type Answer, type Asking, ask } from '../../../src/testing/clients/planned-client.ts';
import { until } from '../../../src/testing/clock/clock.ts';
import type { GatewayProcess } from '../../../src/testing/process/gateway-process.ts';
import type { Plan } from '../../../src/testing/upstream/planned-upstream.ts';
import { batchesOf, isFinal, type Json } from '../../batches/batches-client.ts';
import { controlOf } from '../../workspaces/control.ts';

export const MODEL = 'test/planned';
export const EMBEDDING_MODEL = 'test/vectors';
const MAX_TOKENS = 2_000;
const MOST_TOOL_TURNS = 2;
const BATCH_ITEMS = 8;
const BATCH_EVERY_MS = 3_000;
/** What the upstream is asked in a text that the guardrail blocks. */
const FORBIDDEN = 'FORBIDDEN-1';
const POOR_USD = 0.4;

export interface Keys {
  /** Limits that the traffic does not reach, so that every request takes from leases. */
  rich: readonly string[];
  /** Its limit runs out. */
  poor: string;
  /** Its guardrail blocks `FORBIDDEN`. */
  guarded: string;
  poorLimitNano: bigint;
}

export interface Sent {
  plan: Plan;
  form: string;
  key: string;
  /** A request for embeddings, which have no output tokens. */
  embeds: boolean;
  /** The text that the guardrail blocks is in it. */
  forbidden: boolean;
  /** Undefined for items of a batch. */
  answer?: Answer;
}

interface Form {
  name: string;
  asking(plan: Plan, stream: boolean): Asking;
  /** The client has all of the answer. */
  isComplete(answer: Answer, stream: boolean): boolean;
  streams: boolean;
  loops: boolean;
}

const whole = ({ status, complete }: Answer) => status === 200 && complete;
const DATETIME = { type: 'svc:datetime' };
const loop = ({ toolTurns }: Plan) => (toolTurns === undefined ? {} : { tools: [DATETIME] });

const FORMS: readonly Form[] = [
  {
    name: 'chat',
    asking: (plan, stream) => ({ stream, body: { max_tokens: MAX_TOKENS, ...loop(plan) } }),
    isComplete: (answer, stream) => (stream ? answer.done && answer.errors.length === 0 : whole(answer)),
    streams: true,
    loops: true,
  },
  {
    name: 'messages',
    asking: (plan, stream) => ({
      stream,
      route: '/messages',
      body: { max_tokens: MAX_TOKENS, user: undefined, metadata: { user_id: plan.tag }, ...loop(plan) },
    }),
    isComplete: (answer, stream) => (stream ? answer.text.includes('event: message_stop') : whole(answer)),
    streams: true,
    loops: true,
  },
  {
    name: 'responses',
    asking: (plan, stream) => ({
      stream,
      route: '/responses',
      body: { input: JSON.stringify(plan), messages: undefined, max_output_tokens: MAX_TOKENS, ...loop(plan) },
    }),
    isComplete: (answer, stream) => (stream ? answer.text.includes('event: response.completed') : whole(answer)),
    streams: true,
    loops: true,
  },
  {
    name: 'gemini',
    asking: (plan, stream) => ({
      route: `/models/${MODEL}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      body: {
        ...{ model: undefined, stream: undefined, messages: undefined },
        contents: [{ role: 'user', parts: [{ text: JSON.stringify(plan) }] }],
        generationConfig: { maxOutputTokens: MAX_TOKENS },
      },
    }),
    isComplete: (answer, stream) => whole(answer) && (!stream || answer.text.includes('"finishReason":"STOP"')),
    streams: true,
    loops: false,
  },
  {
    name: 'embeddings',
    asking: (plan) => ({
      route: '/embeddings',
      body: { model: EMBEDDING_MODEL, input: JSON.stringify(plan), messages: undefined, stream: undefined },
    }),
    isComplete: whole,
    streams: false,
    loops: false,
  },
];

/** The kinds of requests, so that a test can show that each of them ran. */
export const FORM_NAMES = FORMS.map(({ name }) => name);

export class Traffic {
  readonly sent = new Map<string, Sent>();
  /** Batches that were accepted, with the tags of their items. */
  readonly batches = new Map<string, readonly string[]>();
  /** By tag, requests whose client has all of the answer. */
  readonly complete = new Set<string>();
  readonly keys: Keys;
  readonly #url: string;
  readonly #random: () => number;

  constructor(url: string, keys: Keys, random: () => number) {
    this.#url = url;
    this.keys = keys;
    this.#random = random;
  }

  /** Sends one request after the other until it is over. */
  async client(name: string, isOver: () => boolean): Promise<void> {
    for (let at = 0; !isOver(); at++) {
      const form = this.#pick(FORMS);
      const stream = form.streams && this.#random() < 0.7;
      const sent = this.#request(`${name}-${at}`, form);
      const { answer } = this.#send(sent, form, stream);
      if (this.#random() < 0.1) void sleep(clock, this.#random() * 300).then(() => answer.leave());
      await until(() => answer.over, `${answer.tag} ends`, 180_000);
      if (form.isComplete(answer, stream)) this.complete.add(answer.tag);
      // A gateway that is away refuses at once.
      if (answer.status === 0) await sleep(clock, 100);
    }
  }

  /** Submits batches, each until it is accepted once. */
  async submitter(isOver: () => boolean): Promise<void> {
    const routes = ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/embeddings'];
    for (let at = 0; !isOver(); at++) {
      const endpoint = routes[at % routes.length]!;
      const key = this.keys.rich[at % this.keys.rich.length]!;
      const embeds = endpoint === '/v1/embeddings';
      const items = Array.from({ length: BATCH_ITEMS }, (_, item) => {
        const plan = this.#plan(`b${at}-${item}`);
        this.sent.set(plan.tag, { plan, form: 'batch', key, embeds, forbidden: false });
        return { custom_id: plan.tag, body: itemBody(endpoint, plan) };
      });
      const model = embeds ? EMBEDDING_MODEL : MODEL;
      const id = await this.#submit(key, `batch-${at}`, { endpoint, model, requests: items });
      this.batches.set(
        id,
        items.map(({ custom_id: tag }) => tag),
      );
      await sleep(clock, BATCH_EVERY_MS);
    }
  }

  /** The batches in their final states: each item has one result. @returns how many items failed */
  async endOfBatches(gateway: GatewayProcess): Promise<number> {
    let failed = 0;
    for (const [id, tags] of this.batches) {
      const { key } = this.sent.get(tags[0]!)!;
      const { send } = batchesOf(gateway, key);
      const batch: Json = await until(
        async () => {
          const { body } = await send('GET', `/batches/${id}`);
          return isFinal(body.status) && body;
        },
        `the batch ${id} ends`,
        180_000,
      );
      assert.equal(batch.status, 'completed', JSON.stringify(batch));
      assert.deepEqual(
        batch.results.map(({ custom_id: tag }: Json) => tag),
        tags,
      );
      assert.equal(batch.request_counts.completed + batch.request_counts.failed, tags.length);
      failed += batch.request_counts.failed;
    }
    return failed;
  }

  #send(sent: Omit<Sent, 'answer'>, form: Form, stream: boolean): { answer: Answer } {
    const asking = form.asking(sent.plan, stream);
    const answer = ask(this.#url, sent.plan, { ...asking, key: sent.key });
    this.sent.set(sent.plan.tag, { ...sent, answer });
    return { answer };
  }

  #request(tag: string, form: Form): Omit<Sent, 'answer'> {
    const random = this.#random;
    const kind = random();
    const plan = this.#plan(tag);
    const common = { plan, form: form.name, embeds: form.name === 'embeddings' };
    if (form.loops && random() < 0.15) {
      // All turns together stay below the limit of the request, which would end the answer.
      const completionTokens = 1 + Math.floor((random() * MAX_TOKENS) / (MOST_TOOL_TURNS + 2));
      Object.assign(plan, { completionTokens, toolTurns: 1 + Math.floor(random() * MOST_TOOL_TURNS) });
    }
    if (form.streams && random() < 0.08) plan.cutAfter = Math.floor(random() * 3);
    if (kind < 0.1) {
      // The upstream keeps to what the request lets it cost at most, so that the limit must hold.
      plan.promptTokens = 20;
      return { ...common, key: this.keys.poor, forbidden: false };
    }
    if (kind < 0.2) {
      const forbidden = random() < 0.5;
      if (forbidden) plan.text = `${FORBIDDEN} `;
      return { ...common, key: this.keys.guarded, forbidden };
    }
    return { ...common, key: this.#pick(this.keys.rich), forbidden: false };
  }

  #plan(tag: string): Plan {
    const random = this.#random;
    return {
      tag,
      events: 1 + Math.floor(random() * 12),
      gapMs: random() * 40,
      promptTokens: 10 + Math.floor(random() * 5_000),
      completionTokens: 1 + Math.floor(random() * MAX_TOKENS),
      ...(random() < 0.1 && { gzip: true }),
    };
  }

  /** With an idempotency key, a batch whose answer was lost may be submitted again. */
  async #submit(key: string, idempotencyKey: string, body: object): Promise<string> {
    for (;;) {
      const response = await fetch(`${this.#url}/api/v1/batches`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(30_000),
      }).catch(() => undefined);
      const text = await response?.text().catch(() => undefined);
      if (response?.status === 202 && text !== undefined) return (JSON.parse(text) as { id: string }).id;
      if (response !== undefined && response.status !== 202) {
        assert.ok(response.status >= 500, `a batch is refused: ${response.status} ${text}`);
      }
      await sleep(clock, 500);
    }
  }

  #pick<T>(of: readonly T[]): T {
    return of[Math.floor(this.#random() * of.length)]!;
  }
}

function itemBody(endpoint: string, plan: Plan): object {
  const text = JSON.stringify(plan);
  const messages = [{ role: 'user', content: text }];
  if (endpoint === '/v1/embeddings') return { input: text, user: plan.tag };
  if (endpoint === '/v1/responses') return { input: text, user: plan.tag, max_output_tokens: MAX_TOKENS };
  if (endpoint === '/v1/messages') return { max_tokens: MAX_TOKENS, metadata: { user_id: plan.tag }, messages };
  return { max_tokens: MAX_TOKENS, user: plan.tag, messages };
}

export async function makeKeys(gateway: GatewayProcess): Promise<Keys> {
  const { call } = controlOf(gateway);
  /** On a busy machine, a gateway that has just started may refuse with 503. */
  const made = (route: string, body: Json): Promise<Json> =>
    until(
      async () => {
        const answer = await call('POST', route, body);
        assert.ok(answer.status < 300 || answer.status === 503, JSON.stringify(answer.body));
        return answer.status < 300 && answer.body;
      },
      `POST ${route} succeeds`,
      120_000,
    );
  const rich: string[] = [];
  for (const [at, limit_reset] of ['daily', 'monthly', undefined].entries()) {
    rich.push((await made('/keys', { name: `rich ${at}`, limit: 1_000, ...(limit_reset && { limit_reset }) })).key);
  }
  const poor = await made('/keys', { name: 'poor', limit: POOR_USD });
  const guarded = await made('/keys', { name: 'guarded', limit: 1_000 });
  const filters = [{ pattern: FORBIDDEN, action: 'block' }];
  const { data: guardrail } = await made('/guardrails', { name: 'mixed', content_filters: filters });
  await made(`/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [guarded.data.hash] });
  return { rich, poor: poor.key, guarded: guarded.key, poorLimitNano: BigInt(POOR_USD * 1e9) };
}
