/**
 * Options of provider kinds besides address and credential: a project, a region, a version. The kind defines them
 * (`providers/provider.ts`); the yaml and the environment set them.
 */
import type { Environment } from './environment.ts';
import type { Field, Reader } from './field.ts';
import type { KindFacts } from './provider-readers.ts';
import { textLike } from './readers.ts';
import type { ProviderSettings } from './settings.ts';

export interface OptionFacts {
  /** Variables for it if the yaml does not set it; the first one that is set applies. */
  environment?: readonly string[];
  fallback?: string;
  /** Whether the provider needs it, always or only without a `base_url` in the yaml. */
  required?: boolean | 'unless base_url';
  /**
   * Points to a credential (a key file): its variable enables the provider, and is never used with a `base_url` or an
   * `api_key`, like every credential of the environment.
   */
  credential?: boolean;
  pattern: RegExp;
  /** The pattern in words: `must be <expectation>`. */
  expectation: string;
  /** For the table of variables. */
  meaning: string;
}

export type Options = Readonly<Record<string, OptionFacts>>;

/** Readers of a kind's own members, in addition to those of every provider. */
export function optionReaders(options: Options | undefined): Record<string, Reader<string>> {
  return Object.fromEntries(
    Object.entries(options ?? {}).map(([name, { pattern, expectation }]) => [name, textLike(pattern, expectation)]),
  );
}

/** The options set in the yaml. */
export function optionsRead(options: Options | undefined, read: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.keys(options ?? {}).flatMap((name) => (read[name] ? [[name, String(read[name])]] : [])),
  );
}

/** The kind that a provider's mapping names, before the mapping is read; undefined when it names none. */
export function kindNamed(field: Field, kinds: readonly KindFacts[]): KindFacts | undefined {
  const named = (field.node as { get?: (key: string) => unknown }).get?.('kind');
  return kinds.find(({ id }) => id === named);
}

/** The options of a provider, completed from the environment and the defaults; missing ones are problems. */
export function completeOptions(
  provider: ProviderSettings,
  kind: KindFacts,
  environment: Environment,
): ProviderSettings {
  if (kind.options === undefined) return provider;
  const options: Record<string, string> = { ...provider.options };
  const ownCredential = provider.baseUrl !== undefined || provider.credentials.length > 0;
  for (const [name, facts] of Object.entries(kind.options)) {
    if (options[name] !== undefined) continue;
    const value = facts.credential && ownCredential ? undefined : fromEnvironment(facts, environment);
    if (value !== undefined) options[name] = value;
    else if (facts.fallback !== undefined) options[name] = facts.fallback;
    else if (facts.required === true || (facts.required !== undefined && provider.baseUrl === undefined)) {
      const [variable] = facts.environment ?? [];
      const wanted = `the provider ${provider.id} needs ${name}`;
      if (variable === undefined) environment.fail('providers', wanted);
      else environment.fail(variable, `is not set, and ${wanted}`);
    }
  }
  return { ...provider, options };
}

/** Whether the environment sets a kind's credential and all other required options. */
export function switchedOn(kind: KindFacts, environment: Environment): boolean {
  const facts = Object.values(kind.options ?? {});
  const given = ({ environment: names = [] }: OptionFacts) => names.some((name) => environment.get(name) !== undefined);
  return facts.some((one) => one.credential && given(one)) && facts.every((one) => !one.required || given(one));
}

function fromEnvironment({ environment: names = [], pattern, expectation }: OptionFacts, environment: Environment) {
  for (const name of names) {
    const value = environment.get(name);
    if (value === undefined) continue;
    return pattern.test(value) ? value : environment.fail(name, `must be ${expectation}`);
  }
  return undefined;
}
