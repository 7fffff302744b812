/** BYOK credentials without I/O: parsing management requests and rendering credentials. */
import { invalidField } from '../base/errors.ts';
import { storable } from '../base/storable.ts';
import type { ByokCredentialReply, UpdateByokCredentialBody } from './schema.ts';
import type { ByokCredentialSettings, ShownByokCredential } from './store.ts';

/** Defaults for a credential created with only a provider and a key. */
export const USUAL_SETTINGS: ByokCredentialSettings = Object.freeze({
  name: null,
  disabled: false,
  isFallback: false,
  isRequired: false,
  isByokOnly: false,
  declaredZdr: null,
  allowedModels: null,
  allowedKeyIds: null,
  allowedUserIds: null,
});

/**
 * The settings after a change; members absent from the body stay. Throws GatewayError 400 with the field path.
 *
 * @param keyIds ids of the keys that the body's hashes name; undefined if it has no such list
 */
export function changedSettings(
  before: ByokCredentialSettings,
  body: UpdateByokCredentialBody,
  keyIds: readonly string[] | null | undefined,
): ByokCredentialSettings {
  const settings: ByokCredentialSettings = {
    name: body.name === undefined ? before.name : storable('name', body.name),
    disabled: body.disabled ?? before.disabled,
    isFallback: body.is_fallback ?? before.isFallback,
    isRequired: body.is_required ?? before.isRequired,
    isByokOnly: body.is_byok_only ?? before.isByokOnly,
    declaredZdr: body.declared_zdr === undefined ? before.declaredZdr : body.declared_zdr,
    allowedModels: listed('allowed_models', body.allowed_models, before.allowedModels),
    allowedKeyIds: keyIds === undefined ? before.allowedKeyIds : keyIds,
    allowedUserIds: listed('allowed_user_ids', body.allowed_user_ids, before.allowedUserIds),
  };
  if (settings.isFallback && settings.isByokOnly) {
    const [path, other] = body.is_fallback === true ? ['is_fallback', 'is_byok_only'] : ['is_byok_only', 'is_fallback'];
    throw invalidField(path!, `cannot be true together with ${other}`);
  }
  return settings;
}

function listed(
  path: string,
  given: readonly string[] | null | undefined,
  before: readonly string[] | null,
): readonly string[] | null {
  for (const [index, item] of (given ?? []).entries()) storable(`${path}[${index}]`, item);
  return given === undefined ? before : given;
}

/** `BYOKKey` in `openapi.json`. */
export function byokCredentialReply(key: ShownByokCredential): ByokCredentialReply {
  return {
    id: key.id,
    provider: key.provider,
    workspace_id: key.workspaceId,
    name: key.name,
    label: key.label,
    sort_order: key.sortOrder,
    disabled: key.disabled,
    is_fallback: key.isFallback,
    is_required: key.isRequired,
    is_byok_only: key.isByokOnly,
    declared_zdr: key.declaredZdr,
    allowed_models: copied(key.allowedModels),
    allowed_api_key_hashes: copied(key.allowedKeyHashes),
    allowed_user_ids: copied(key.allowedUserIds),
    created_at: key.createdAt.toISOString(),
  };
}

function copied(list: readonly string[] | null): string[] | null {
  return list && [...list];
}

/** State for the audit log: the wire members, and when the credential was given. */
export function byokCredentialState(key: ShownByokCredential): object {
  return { ...byokCredentialReply(key), credential_given_at: key.sealedAt.toISOString() };
}

export function byokCredentialResource({ id, workspaceId }: ShownByokCredential) {
  return { resourceType: 'byok_key', resourceId: id, workspaceId };
}
