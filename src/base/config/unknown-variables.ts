/** Misspelled settings in the environment, which would otherwise have no effect and no message. */

import { nearest } from '../nearest.ts';
import { VARIABLES } from './environment.ts';
import type { KindFacts } from './provider-readers.ts';
import type { UnknownVariable } from './settings.ts';

const PREFIX = 'GATEHOUSE';
/** Kubernetes sets these in every pod if a Service is called gatehouse; the others are for the tests. */
const NOT_OURS = /^GATEHOUSE_(?:(?:PORT|SERVICE)_|TEST_|CORPUS$)/;
/** Other variables are compared only if they look like a credential; short names resemble too many others. */
const CREDENTIAL = /^[A-Z][A-Z0-9_]{7,62}(?:KEY|TOKEN)$/;
const SHORTEST_COMPARED = 12;
/** Names that resemble a variable of another provider. */
const MISLEADING = /^GROK/;
const MOST = 20;

export function unknownVariables(names: readonly string[], kinds: readonly KindFacts[]): UnknownVariable[] {
  const own = VARIABLES.map(({ name }) => name);
  const credentials = kinds.flatMap(({ environment = [], alsoEnvironment = [] }) =>
    [environment, alsoEnvironment].flat(),
  );
  const compared = credentials.filter((name) => name.length >= SHORTEST_COMPARED);
  const set = new Set(names);
  const known = new Set([
    ...own,
    ...credentials.flatMap((name) => [name, `${name}_FILE`]),
    ...kinds.flatMap(({ options = {} }) => Object.values(options).flatMap(({ environment = [] }) => environment)),
  ]);
  const unknown: UnknownVariable[] = [];
  for (const name of names) {
    if (known.has(name) || unknown.length === MOST) continue;
    if (isOurs(name)) {
      unknown.push({ name: name.slice(0, 100), suggested: nearest(name, own) ?? null });
    } else if (CREDENTIAL.test(name) && !MISLEADING.test(name)) {
      const suggested = nearest(name, compared);
      if (suggested !== undefined && !set.has(suggested)) unknown.push({ name, suggested: suggested });
    }
  }
  return unknown;
}

function isOurs(name: string): boolean {
  if (NOT_OURS.test(name)) return false;
  const [first = ''] = name.split('_', 1);
  return (
    name.startsWith(`${PREFIX}_`) || (first.length > 6 && name !== first && nearest(first, [PREFIX]) !== undefined)
  );
}

/** For a yaml member that is set by a variable. */
export function variableFor(member: string): string | undefined {
  const name = `${PREFIX}_${member.toUpperCase()}`;
  return VARIABLES.some((variable) => variable.name === name) ? `the environment variable ${name}` : undefined;
}
