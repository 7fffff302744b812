/**
 * Updates the facts from a public registry and from the configured providers' model lists. Runs on the operator's
 * command, never during a request. The result is validated as a whole; if it is invalid, nothing is written and the
 * existing facts stay.
 */
import { Compile } from 'typebox/compile';
import type { Clock } from '../../base/clock.ts';
import type { ProviderSettings } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import { deliver, type Provider, type ProviderKind, type Transport } from '../../providers/index.ts';
import { type FactsFile, ModelFactsSchema } from '../facts.ts';
import { collect, FetchError, jsonOf } from './collect.ts';
import { checkedFile, loadFacts, writeFacts } from './data-file.ts';
import { type Merge, mergeRegistry } from './registry.ts';

const MOST_REGISTRY_BYTES = 32 * 1024 * 1024;
const MOST_LIST_BYTES = 8 * 1024 * 1024;
const MOST_LISTED = 5_000;
const TIMEOUTS = { connect: 10_000, firstByte: 30_000, idle: 30_000, stall: 120_000, total: 120_000 };
/** A registry with less than this share of the known models is incomplete. */
const LEAST_SHARE = 0.5;

interface RefreshOptions {
  dataDir: string;
  registryUrl: string;
  settings: readonly ProviderSettings[];
  providers: readonly Provider[];
  kinds: readonly ProviderKind[];
  transport: Transport;
  clock: Clock;
  log: Log;
}

export interface Refreshed extends Omit<Merge, 'models'> {
  file: string;
  models: number;
  /** How many models each provider listed, or why it failed. */
  listed: Record<string, number | string>;
}

/** @throws FetchError or RangeError with the reason; the file is then unchanged */
export async function refreshCatalog(options: RefreshOptions): Promise<Refreshed> {
  const { dataDir, registryUrl, transport, clock, log, kinds } = options;
  const known = loadFacts(dataDir, log);
  const body = await collect(
    (receiver) =>
      transport.send(
        { url: registryUrl, method: 'GET', headers: { accept: 'application/json' }, body: '', timeouts: TIMEOUTS },
        receiver,
      ),
    MOST_REGISTRY_BYTES,
  ).catch((error: unknown) => {
    throw new FetchError(`the registry ${registryUrl} ${(error as Error).message}`);
  });
  const date = new Date(clock.now()).toISOString().slice(0, 10);
  const row = Compile(ModelFactsSchema);
  const { models, ...merge } = mergeRegistry({
    known: known.models,
    registry: jsonOf(body),
    kinds,
    source: `registry ${new URL(registryUrl).host}`,
    date,
    isValid: (value) => row.Check(value),
  });
  refuseParts(merge, known.models.length);
  const { lists, listed } = await fetchFromProviders(options, known.listed);
  const facts: FactsFile = { version: 1, date, source: registryUrl.slice(0, 300), models, listed: lists };
  checkedFile(facts);
  return { ...merge, file: writeFacts(dataDir, facts), models: models.length, listed };
}

function refuseParts({ taken, refused }: Omit<Merge, 'models'>, known: number): void {
  if (taken < known * LEAST_SHARE) {
    throw new RangeError(
      `the registry is incomplete: it has ${taken} models of these providers, but ${known} are known`,
    );
  }
  if (refused > taken / 4) throw new RangeError(`${refused} models of the registry are invalid`);
}

/** Fetches the lists of environment-enabled providers. A failing one keeps its previous list. */
async function fetchFromProviders(options: RefreshOptions, before: Readonly<Record<string, readonly string[]>>) {
  const open = new Set(options.settings.filter(({ openEnded }) => openEnded).map(({ id }) => id));
  const lists: Record<string, string[]> = {};
  const listed: Refreshed['listed'] = {};
  await Promise.all(
    options.providers
      .filter(({ id, kind }) => open.has(id) && kind.transport === undefined)
      .map(async (provider) => {
        try {
          const names = await namesOf(provider, options);
          lists[provider.id] = names;
          listed[provider.id] = names.length;
        } catch (error) {
          if (before[provider.id]) lists[provider.id] = [...before[provider.id]!];
          listed[provider.id] = (error as Error).message;
        }
      }),
  );
  return { lists, listed };
}

async function namesOf(provider: Provider, { transport, clock, log }: RefreshOptions): Promise<string[]> {
  const [credential = null] = provider.credentials;
  const body = await collect(
    (receiver) =>
      deliver(
        {
          provider: { ...provider, timeouts: TIMEOUTS },
          credential,
          format: provider.kind.speaks ?? 'chat',
          model: '',
          stream: false,
          path: '/models',
          operation: 'models',
          body: '',
          method: 'GET',
        },
        receiver,
        { transport, clock, log },
      ),
    MOST_LIST_BYTES,
  );
  return listedNames(jsonOf(body));
}

const NAME = /^[A-Za-z0-9~._:@+/-]{1,330}$/;

/**
 * Most providers return `{data: [{id}]}`, some a bare list, others `{models: [{name}]}`. Exported for tests. @throws
 * FetchError
 */
export function listedNames(answer: unknown): string[] {
  const holder = answer as { data?: unknown; models?: unknown } | null;
  const list = Array.isArray(answer) ? answer : (holder?.data ?? holder?.models);
  if (!Array.isArray(list)) throw new FetchError('answered without a list of models');
  const names = list.map((entry: { id?: unknown; name?: unknown } | null) => entry?.id ?? entry?.name);
  return [...new Set(names.filter((name) => typeof name === 'string' && NAME.test(name)) as string[])].slice(
    0,
    MOST_LISTED,
  );
}
