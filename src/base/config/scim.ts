/** The section `scim` of the yaml: whom sync jobs ask for users and groups (docs/guides/scim.md). */
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { mapping, textLike } from './readers.ts';

/** The SCIM endpoint of an identity provider. */
export interface ScimSource {
  /** Without a slash at its end. */
  baseUrl: string;
  token: Secret;
}

export interface ScimSettings {
  /** null: an identity provider tells of itself, and sync jobs ask nobody. */
  source: ScimSource | null;
}

export const DEFAULT_SCIM: ScimSettings = Object.freeze({ source: null });

export function scim(field: Field): ScimSettings | undefined {
  const read = mapping(field, { source });
  return read && { source: read.source ?? null };
}

function source(field: Field): ScimSource | undefined {
  const token = textLike(CREDENTIAL, 'a text without spaces or control characters, as a header carries it');
  const read = mapping(field, { base_url: baseUrl, token }, ['base_url', 'token']);
  if (read?.base_url === undefined || read.token === undefined) return undefined;
  return { baseUrl: read.base_url, token: new Secret(read.token) };
}
