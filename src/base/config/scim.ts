/** The section `scim` of the yaml: the source of users and groups for sync jobs (docs/guides/scim.md). */
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { mapping, textLike } from './readers.ts';

/** The SCIM endpoint of an identity provider. */
export interface ScimSource {
  /** Without a trailing slash. */
  baseUrl: string;
  token: Secret;
}

export interface ScimSettings {
  /** null: the identity provider pushes changes, and sync jobs pull nothing. */
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
