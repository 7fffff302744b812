/** A configuration reload as an audit log entry. */
import { createHash } from 'node:crypto';
import { organizationId } from '../access/index.ts';
import { gatewayAuthor, recordOnce } from '../audit/index.ts';
import type { Config, ConsoleSettings, FederationPolicy, ScimSource } from '../base/config.ts';
import { usdFromNano } from '../base/money.ts';
import type { Secret } from '../base/secret.ts';
import type { Database } from '../storage/database.ts';

/** All processes reload within this time; the first one writes the entry. */
const SAME_RELOAD_MS = 10_000;
const HASH_SHOWN = 12;

/** Writes the difference between two configurations, if it affects anything that a reload applies. */
export async function recordReload(database: Database, before: Config, after: Config, nowMs: number): Promise<void> {
  const states = { before: stateOf(before), after: stateOf(after) };
  if (JSON.stringify(states.before) === JSON.stringify(states.after)) return;
  const organization = await organizationId(database);
  if (organization === undefined) return;
  const change = {
    action: 'configuration.reloaded',
    resourceType: 'configuration',
    resourceId: digest(JSON.stringify(states.after)),
    workspaceId: null,
    ...states,
  } as const;
  await database.transaction((tx) => recordOnce(tx, gatewayAuthor(organization, nowMs), change, SAME_RELOAD_MS));
}

/** The settings that a reload applies. Secrets appear as hash prefixes, so that a replaced secret is visible. */
function stateOf(config: Config): object {
  const { balanceNano, ...account } = config.account;
  return {
    account: { ...account, balance_usd: balanceNano === null ? null : usdFromNano(balanceNano) },
    routing: config.routing,
    hosts: config.hosts,
    trusted_proxies: config.trustedProxies,
    egress: config.egress,
    egress_proxy: config.egressProxy,
    retention: config.retention,
    io_logging: config.ioLogging,
    vault: config.vault,
    intern_programme: config.internProgramme,
    scim_source: sourceState(config.scim.source),
    console: consoleState(config.console),
    federation: config.federation.map(policyState),
    rate_limits: config.rateLimits,
    providers: config.providers.map(({ id, kind, baseUrl, credentials, models }) => ({
      id,
      kind,
      base_url: baseUrl ?? null,
      credential_hashes: credentials.map(hashOf),
      models: models.map((model) => model.id),
    })),
  };
}

function sourceState(source: ScimSource | null): object | null {
  return source && { base_url: source.baseUrl, token_hash: hashOf(source.token) };
}

function consoleState({ oidc }: ConsoleSettings): object {
  return { oidc: oidc && { ...oidc, clientSecret: oidc.clientSecret && hashOf(oidc.clientSecret) } };
}

/** Given keys by their ids: the keys are public, and long. */
function policyState({ id, issuer, audience, keys, claims, keyHash, lifetimeMs }: FederationPolicy): object {
  const given = Array.isArray(keys) ? { key_ids: keys.map(({ kid }) => kid ?? null) } : { jwks_uri: keys };
  return { id, issuer, audience, ...given, claims, key_hash: keyHash, lifetime_ms: lifetimeMs };
}

function hashOf(secret: Secret): string {
  return digest(secret.reveal()).slice(0, HASH_SHOWN);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
