/** Whether a caller may use the file store of a vendor, and with which credential. */
import type { Caller } from '../../access/index.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import type { ByokCredentials } from '../../byok/index.ts';
import type { Catalog } from '../../catalog/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import { byokTarget, type Provider, type UpstreamTarget } from '../../providers/index.ts';
import type { Vendor } from './names.ts';

export interface VendorAccess {
  /** The configured providers of a kind. */
  providersOf(kind: Vendor): readonly Provider[];
  catalog(): Catalog;
  credentials: ByokCredentials;
  /** Resolves when the credentials are up to date. */
  refresh(): Promise<void> | undefined;
  /** Whether the account requires zero data retention. */
  zdr(): boolean;
}

/** No credential that is limited to certain models covers the files of an account. */
const ANY_MODEL = '';

/**
 * The target of a vendor's calls. @param workspaceId whose credentials may be used
 * @throws GatewayError 400 without a BYOK credential, 403 where the guardrails of the key exclude the provider
 */
export async function vendorTarget(
  access: VendorAccess,
  caller: Caller,
  workspaceId: string,
  vendor: Vendor,
): Promise<UpstreamTarget> {
  await access.refresh();
  const user = caller.workspaceId === workspaceId ? caller : { ...caller, workspaceId };
  for (const provider of access.providersOf(vendor)) {
    const [credential] = access.credentials.of(user, { id: provider.id, kindId: vendor }, ANY_MODEL);
    if (credential === undefined) continue;
    checkPolicy(access.catalog(), caller, provider);
    return byokTarget(provider, credential.value);
  }
  throw invalidField('provider', 'needs a BYOK credential of this provider that is not limited to certain models');
}

/** The key may use the store of a provider if it may use at least one of its endpoints. */
function checkPolicy(catalog: Catalog, caller: Caller, { id }: Provider): void {
  const { rules } = policyOf(caller).compiled;
  if (rules.length === 0) return;
  const endpoints = catalog.models.flatMap((model) => model.endpoints).filter(({ provider }) => provider.id === id);
  if (endpoints.some((endpoint) => rules.every((rule) => rule.keeps(endpoint, catalog)))) return;
  throw new GatewayError('permission_denied', 'the guardrails of this key exclude the provider', { path: 'provider' });
}

/** @throws GatewayError 403 where content must not be stored at a vendor, or only after it was filtered */
export function checkUpload(access: VendorAccess, caller: Caller, vendor: Vendor): void {
  const policy = policyOf(caller);
  const refused = (why: string) => new GatewayError('permission_denied', why, { path: 'provider' });
  if (access.zdr() || policy.wantsZdr(`${vendor}/files`)) {
    throw refused('zero data retention is required, so no files are stored at the provider');
  }
  if (policy.compiled.filters !== undefined) {
    throw refused('the guardrails of this key filter content, which is not done for files at a provider');
  }
}
