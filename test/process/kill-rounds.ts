/**
 * The kill loop: 50 streams run, the gateway is killed with -9 in a chosen phase, started again, and its rows are
 * compared with what the upstream, a process of its own, has logged.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { type Answer, ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect, embeddedTarget, type Row, readDays, readRows } from '../../src/testing/database/rows.ts';
import {
  type GatewayProcess,
  gatewayHome,
  plannedYaml,
  serversOf,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import type { Entry, Plan } from '../../src/testing/upstream/planned-upstream.ts';

const STREAMS = 50;
const EVENTS = 6;
const TEXT = 'words ';

/** The upstream according to its log. */
interface Upstream {
  url: string;
  entries(what: Entry['what']): Entry[];
  release(): void;
  stop(): void;
  go(): void;
}

export interface Round {
  upstream: Upstream;
  gateway: GatewayProcess;
  /** Sends the streams of this round, each with this plan. */
  send(plan: Omit<Plan, 'tag'>): Answer[];
}

/** Brings 50 streams into the phase; the kill follows when it resolves. */
export type Phase = (round: Round, random: () => number) => Promise<void>;

export const PHASES: Record<string, Phase> = {
  'before dispatch': async ({ send, upstream, gateway }, random) => {
    // A stopped upstream reads nothing, so requests to it count as not received until it continues.
    if (random() < 0.5) upstream.stop();
    const before = journalBytes(gateway);
    send({ hold: 'head' });
    // An intent takes more than 400 bytes.
    const more = 1 + random() * STREAMS * 400;
    await until(() => journalBytes(gateway) > before + more, 'intents are journaled');
  },
  'at headers': async ({ send, upstream }, random) => {
    const atLeast = 1 + Math.floor(random() * STREAMS);
    const before = upstream.entries('head').length;
    send({ hold: 'body' });
    await until(() => upstream.entries('head').length >= before + atLeast, `${atLeast} heads`);
  },
  'mid-stream': async ({ send }, random) => {
    const answers = send({ events: EVENTS, text: TEXT, hold: 1 + Math.floor(random() * (EVENTS - 1)) });
    const atLeast = 1 + Math.floor(random() * STREAMS);
    await until(() => answers.filter(({ text }) => text.includes(TEXT)).length >= atLeast, `${atLeast} streams`);
  },
  'after the terminal event': async ({ send }, random) => {
    const atLeast = 1 + Math.floor(random() * STREAMS);
    const answers = send({ events: EVENTS, text: TEXT });
    await until(() => answers.filter(({ done }) => done).length >= atLeast, `${atLeast} ends`);
  },
  'mid-flush': async ({ send, gateway }, random) => {
    const lock = await holdTable(gateway);
    try {
      const answers = send({ events: 1, text: TEXT });
      await until(() => answers.every(({ done }) => done), 'all ends');
      await lock.waiting();
      // Killed while the transaction waits, or just when it continues.
      if (random() < 0.5) await lock.free();
      await sleep(random() * 10);
    } finally {
      gateway.signal('SIGKILL');
      await lock.free();
    }
  },
};

export interface Counts {
  rounds: number;
  sent: number;
  /** Requests that the upstream has seen, and their rows. */
  seen: number;
  exact: number;
  estimated: number;
  unconfirmed: number;
  /** Rows of requests that were journaled and never arrived at the upstream. */
  unsent: number;
}

export interface Rounds {
  /** Of each phase. */
  rounds: number;
  seed: number;
  workers?: number;
}

/** Runs the rounds on one data folder, phase by phase; throws at the first row that is missing, doubled or wrong. */
export async function killRounds(
  t: TestContext,
  phases: readonly string[],
  { rounds, seed, workers = 1 }: Rounds,
): Promise<Counts> {
  const home = await gatewayHome(t);
  const upstream = await startUpstream(t, path.join(home.folder, 'upstream.log'));
  const random = seeded(seed);
  const killed = phases.flatMap((name) => Array<string>(rounds).fill(name));
  const counts: Counts = { rounds: killed.length, sent: 0, seen: 0, exact: 0, estimated: 0, unconfirmed: 0, unsent: 0 };
  const all: Answer[] = [];
  const options = { home, yaml: plannedYaml(upstream.url), env: { GATEHOUSE_WORKERS: String(workers) } };
  let gateway = await startGatewayProcess(t, options);
  for (const [round, name] of killed.entries()) {
    t.diagnostic(`killed ${name}`);
    const send = (plan: Omit<Plan, 'tag'>) => {
      const answers = Array.from({ length: STREAMS }, (_, at) =>
        ask(gateway.url, { ...plan, tag: `r${round}-${at}`, promptTokens: 100 + at, completionTokens: 10 + at }),
      );
      all.push(...answers);
      return answers;
    };
    await PHASES[name]!({ upstream, gateway, send }, random);
    await gateway.end('SIGKILL');
    upstream.go();
    upstream.release();
    await until(() => all.every(({ over }) => over), 'every client has lost its connection');
    gateway = await startGatewayProcess(t, options);
    await check(gateway, upstream, all, counts);
  }
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  assert.deepEqual(serversOf(home), []);
  return counts;
}

async function check(gateway: GatewayProcess, upstream: Upstream, answers: Answer[], counts: Counts): Promise<void> {
  const rows = await readRows(embeddedTarget(gateway.home));
  const byTag = new Map(rows.map((row) => [row.tag, row]));
  assert.equal(byTag.size, rows.length, 'a request has two rows');
  const asked = new Set(upstream.entries('asked').map(({ tag }) => tag));
  const events = new Map(upstream.entries('event').map((entry) => [entry.tag, entry.events]));
  const sent = new Set(upstream.entries('sent').map(({ tag }) => tag));
  for (const tag of asked) assert.ok(byTag.has(tag), `the upstream saw ${tag}, and there is no row`);
  for (const row of rows) checkRow(row, { asked, events, sent });
  for (const answer of answers) {
    const row = byTag.get(answer.tag);
    if (answer.generationId !== undefined) assert.equal(row?.id, answer.generationId, answer.tag);
    if (answer.done) assert.ok(row && !row.estimated && !row.unconfirmed, `${answer.tag} was complete`);
    if (answer.text.includes(TEXT))
      assert.ok(row && !row.unconfirmed && row.output! > 0n, `${answer.tag} was answered`);
  }
  // What the gateway says of those whose head was seen.
  for (const { generationId, tag } of answers.filter((answer) => answer.generationId).slice(-5)) {
    const reply = await gateway.get(`/generation?id=${generationId}`);
    const { data } = (await reply.json()) as { data: { total_cost: number; external_user: string } };
    assert.equal(data.external_user, tag);
    assert.equal(BigInt(Math.round(data.total_cost * 1e9)), byTag.get(tag)?.cost);
  }
  const { data } = (await (await gateway.get('/key')).json()) as { data: { usage: number } };
  const total = rows.reduce((sum, { cost }) => sum + cost, 0n);
  assert.equal(BigInt(Math.round(data.usage * 1e9)), total, 'the counter of the key is the sum of the rows');
  const days = await readDays(embeddedTarget(gateway.home));
  assert.equal(days.requests, BigInt(rows.length), 'every row is in its day, once');
  assert.equal(days.cost, total, 'the days are the sum of the rows');
  Object.assign(counts, {
    sent: answers.length,
    seen: asked.size,
    exact: rows.filter((row) => !row.estimated && !row.unconfirmed).length,
    estimated: rows.filter((row) => row.estimated).length,
    unconfirmed: rows.filter((row) => row.unconfirmed).length,
    unsent: rows.filter((row) => !asked.has(row.tag)).length,
  });
}

interface Truth {
  asked: Set<string>;
  events: Map<string, number>;
  sent: Set<string>;
}

function checkRow(row: Row, { asked, events, sent }: Truth): void {
  const at = BigInt(row.tag.slice(row.tag.indexOf('-') + 1));
  assert.ok(!(row.estimated && row.unconfirmed), row.tag);
  const { input, output } = row;
  assert.ok(input !== null && output !== null && input > 0n, row.tag);
  assert.equal(row.cost, input * 3_000n + output * 15_000n, `${row.tag}: tokens times price`);
  if (!row.estimated && !row.unconfirmed) {
    assert.ok(sent.has(row.tag), `${row.tag} is exact though the upstream did not end`);
    assert.equal(input, 100n + at, row.tag);
    assert.equal(output, 10n + at, row.tag);
    return;
  }
  if (!asked.has(row.tag)) assert.ok(row.unconfirmed, `${row.tag} never arrived, so nothing of it was seen`);
  const most = Math.ceil(((events.get(row.tag) ?? 0) * TEXT.length) / 4);
  assert.ok(output <= most, `${row.tag}: ${row.output} tokens of an answer that held ${most}`);
  if (row.unconfirmed) assert.equal(output, 0n, row.tag);
}

/** Keeps the gateway from writing rows, so that its flush waits in the middle. */
async function holdTable({ home }: GatewayProcess) {
  const client = await connect(embeddedTarget(home));
  await client.query('begin');
  await client.query('lock table generations in share mode');
  let freed: Promise<unknown> | undefined;
  return {
    async waiting(): Promise<void> {
      const blocked = `select 1 from pg_locks where not granted and relation = 'generations'::regclass`;
      for (let tries = 0; tries < 2_000; tries++) if ((await client.query(blocked)).rows.length > 0) return;
      throw new Error('no flush came');
    },
    free(): Promise<unknown> {
      freed ??= client
        .query('rollback')
        .then(() => client.end())
        .catch(() => {});
      return freed;
    },
  };
}

function journalBytes({ home }: GatewayProcess): number {
  const journals = path.join(home.dataDir, 'journal');
  const files = readdirSync(journals, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.log'));
  return files.reduce((sum, name) => sum + statSync(path.join(journals, name)).size, 0);
}

export async function startUpstream(t: TestContext, file: string): Promise<Upstream> {
  const main = path.join(import.meta.dirname, '..', '..', 'src', 'testing', 'upstream', 'planned-upstream.ts');
  const child = spawn(process.execPath, [main, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let url = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    url ||= /"url":"([^"]*)"/.exec(text)?.[1] ?? '';
  });
  await until(() => url !== '', 'the upstream listens', 60_000);
  let log: Entry[] = [];
  let read = 0;
  const entries = (what: Entry['what']) => {
    const text = readFileSync(file, { encoding: 'utf8', flag: 'a+' });
    const end = text.lastIndexOf('\n') + 1;
    const fresh = text.slice(read, end).split('\n').filter(Boolean);
    log = log.concat(fresh.map((line) => JSON.parse(line) as Entry));
    read = end;
    return log.filter((entry) => entry.what === what);
  };
  return {
    url,
    entries,
    release: () => child.kill('SIGUSR2'),
    stop: () => child.kill('SIGSTOP'),
    go: () => child.kill('SIGCONT'),
  };
}

/** Park and Miller's, so that a failing round can be run again. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
