/** Merges the providers of the yaml with the environment. */
import type { Secret } from '../secret.ts';
import type { Environment } from './environment.ts';
import { completeOptions, switchedOn } from './kind-options.ts';
import { DEFAULT_MAX_CONCURRENCY, DEFAULT_TIMEOUTS, type KindFacts } from './provider-readers.ts';
import type { ProviderSettings } from './settings.ts';

/**
 * Adds the providers that the environment enables, and credentials of the environment to listed providers without one. Such a
 * credential is never used with a `base_url`: that would send it to a host that the environment did not name.
 */
export function withEnvironment(
  listed: readonly ProviderSettings[],
  kinds: readonly KindFacts[],
  environment: Environment,
) {
  const providers = [...listed];
  for (const kind of kinds) {
    const credential = credentialOf(kind, environment);
    if (credential === null) {
      if (switchedOn(kind, environment) && !providers.some((one) => one.kind === kind.id))
        providers.push(bare(kind, []));
      continue;
    }
    providers.forEach((provider, index) => {
      const configured =
        provider.kind === kind.id && provider.credentials.length === 0 && provider.baseUrl === undefined;
      if (configured) providers[index] = { ...provider, credentials: [credential] };
    });
    if (!providers.some(({ id }) => id === kind.id)) providers.push(bare(kind, [credential]));
  }
  for (const { id, kind, credentials, baseUrl } of providers) {
    const variable = kinds.find((other) => other.id === kind)?.environment;
    if (credentials.length > 0 || baseUrl !== undefined || variable === undefined) continue;
    environment.fail(variable, `is not set, and the provider ${id} has no api_key`);
  }
  return providers.map((provider) =>
    completeOptions(provider, kinds.find(({ id }) => id === provider.kind)!, environment),
  );
}

/** Kinds that serve if nothing else is configured, unless their variable is off. */
export function standInsOf(kinds: readonly KindFacts[], environment: Environment): ProviderSettings[] {
  return kinds.filter((kind) => kind.standIn && isOn(kind.standInSwitch, environment)).map((kind) => bare(kind, []));
}

function isOn(variable: string | undefined, environment: Environment): boolean {
  const value = variable === undefined ? undefined : environment.get(variable);
  if (value !== undefined && value !== 'on' && value !== 'off') environment.fail(variable!, 'must be on or off');
  return value !== 'off';
}

/** Of the first of its variables that is set. */
function credentialOf(kind: KindFacts, environment: Environment): Secret | null {
  for (const name of [kind.environment, ...(kind.alsoEnvironment ?? [])]) {
    const credential = name === undefined ? null : environment.credential(name);
    if (credential !== null) return credential;
  }
  return null;
}

function bare(kind: KindFacts, credentials: readonly Secret[]): ProviderSettings {
  return {
    id: kind.id,
    name: kind.name,
    kind: kind.id,
    baseUrl: undefined,
    credentials,
    timeouts: DEFAULT_TIMEOUTS,
    maxConcurrency: DEFAULT_MAX_CONCURRENCY,
    options: {},
    strictTemplate: false,
    speaks: null,
    models: kind.models ?? [],
    openEnded: kind.models === undefined,
  };
}
