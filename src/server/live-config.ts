/** The state that a reload replaces: the configuration, and the catalog derived from it. */
import type { Config } from '../base/config.ts';
import { type Log, redact } from '../base/log.ts';
import { buildCatalog, type Catalog, type Facts, loadFacts } from '../catalog/index.ts';
import { TrustedProxies } from '../http/forwarded.ts';
import { KINDS, providersFrom } from '../providers/index.ts';

/** Shorter header values are words, such as a region, not secrets. */
const SHORTEST_SECRET = 16;

const UNPRICED =
  "models without a price: the catalog's prices do not hold behind a base_url; set catalog_prices: true on the provider " +
  'where they do, false where not, or pricing on each model';

export class LiveConfig {
  settings: Config;
  catalog: Catalog;
  proxies: TrustedProxies;
  readonly #dataDir: string;
  readonly #log: Log;
  #facts: Facts;
  /** Discovered providers on this machine, in addition to the configured ones. */
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

  /** Also rereads `catalog.json` in the data directory. */
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

  /** The catalog's name of a model whose id the configuration chose. */
  lastingNames(modelId: string): string[] {
    const facts = this.catalog.find(modelId)?.facts;
    return facts === undefined ? [] : [facts.id, facts.canonical_slug];
  }

  /** Logged because keys with a limit cannot use such models, which is hard to diagnose later. */
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
