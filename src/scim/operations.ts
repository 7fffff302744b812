/** Every operation of SCIM: the protocol for identity providers, and the operations of the control plane. */
import type { Caller } from '../access/index.ts';
import type { Operation } from '../http/operation.ts';
import { groupOperations } from './groups/operations.ts';
import { mappingOperations } from './mappings/operations.ts';
import { discoveryOperations } from './protocol/discovery.ts';
import type { ProvisioningParts } from './provisioning.ts';
import { syncJobOperations } from './sync/operations.ts';
import { userOperations } from './users/operations.ts';

export type ScimParts = ProvisioningParts;

/** Reads `parts` only while handling a request, so that the contract can be built without a database. */
export function scimOperations(parts: ScimParts): Operation<Caller>[] {
  return [
    ...mappingOperations(parts),
    ...syncJobOperations(parts),
    ...discoveryOperations(),
    ...userOperations(parts),
    ...groupOperations(parts),
  ];
}
