/** What is read again while the gateway runs, as it is now: the configuration, and the catalog that comes of it. */
import type { Config } from './base/config.ts';
import { type Log, redact } from './base/log.ts';
import { buildCatalog, type Catalog, type Facts, loadFacts } from './catalog/index.ts';
import { TrustedProxies } from './http/forwarded.ts';
import { KINDS, providersFrom } from './providers/index.ts';

/** Shorter ones of a provider's headers are words, such as a region, and no secrets. */
const SHORTEST_SECRET = 16;

const UNPRICED =
  "models without a price: the catalog's prices do not hold behind a base_url; set catalog_prices: true on the provider " +
  'where they do, false where not, or pricing on each model';

export class Current {
  settings: Config;
  catalog: Catalog;
  proxies: TrustedProxies;
  readonly #dataDir: string;
  readonly #log: Log;
  #facts: Facts;
  /** Providers of this machine that were found, beside the configured ones. */
  #local: Config['providers'] = [];

  constructor(config: Config, log: Log) {
    this.#dataDir = config.dataDir;
    this.#log = log;
    this.#facts = loadFacts(config.dataDir, log);
    this.settings = config;
    this.catalog = this.#build(config);
    this.#warnOfUnpriced();
    this.proxies = new TrustedProxies(config.trustedProxies);
  }

  /** The facts in the data folder are read again, too. */
  reload(next: Config): void {
    this.#facts = loadFacts(this.#dataDir, this.#log);
    this.catalog = this.#build(next);
    this.#warnOfUnpriced();
    this.settings = next;
    this.proxies = new TrustedProxies(next.trustedProxies);
  }

  found(local: Config['providers']): void {
    this.#local = local;
    this.catalog = this.#build(this.settings);
  }

  /** What the facts call a model whose id the configuration chose. */
  lastingNames(modelId: string): string[] {
    const facts = this.catalog.find(modelId)?.facts;
    return facts === undefined ? [] : [facts.id, facts.canonical_slug];
  }

  /** Such models are closed to keys with a limit, which is hard to find out later. */
  #warnOfUnpriced(): void {
    for (const fields of this.catalog.unpriced) this.#log.warn(UNPRICED, fields);
  }

  #build(config: Config): Catalog {
    for (const { credentials, headers = {} } of config.providers) {
      for (const credential of credentials) redact(credential.reveal());
      for (const header of Object.values(headers)) {
        if (header.reveal().length >= SHORTEST_SECRET) redact(header.reveal());
      }
    }
    const providers = [...config.providers, ...this.#local];
    const { standIns: settings } = config;
    const standIns = { settings, providers: providersFrom({ providers: settings }) };
    return buildCatalog(providers, providersFrom({ providers }), KINDS, this.#facts, standIns);
  }
}
