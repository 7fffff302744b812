/** Destinations without I/O: settings from management requests, and what the wire shows. */
import { shownName, storable } from '../base/storable.ts';
import type { DestinationReply, UpdateDestinationBody } from './schema.ts';
import type { DestinationSettings, ShownDestination } from './store.ts';

/** Defaults for a destination created with only a name, a type and a config. */
export const USUAL_SETTINGS: Omit<DestinationSettings, 'name'> = Object.freeze({
  enabled: true,
  privacyMode: false,
  samplingRate: 1,
  regions: ['global'],
  filterRules: null,
  allowedKeyIds: null,
  sendsCost: false,
  sendsIdentity: false,
  sendsRequestContext: false,
});

/**
 * The settings after a change; members absent from the body stay. Throws GatewayError 400 with the field path.
 *
 * @param keyIds ids of the keys that the body's hashes name; undefined if it has no such list
 */
export function changedSettings(
  before: DestinationSettings,
  body: UpdateDestinationBody,
  keyIds: readonly string[] | null | undefined,
): DestinationSettings {
  return {
    name: body.name === undefined ? before.name : shownName(body.name),
    enabled: body.enabled ?? before.enabled,
    privacyMode: body.privacy_mode ?? before.privacyMode,
    samplingRate: body.sampling_rate ?? before.samplingRate,
    regions: body.regions === undefined ? before.regions : regionsOf(body.regions),
    filterRules: body.filter_rules === undefined ? before.filterRules : checkedRules(body.filter_rules),
    allowedKeyIds: keyIds === undefined ? before.allowedKeyIds : keyIds,
    sendsCost: body.broadcast_generation_cost ?? before.sendsCost,
    sendsIdentity: body.broadcast_generation_identity ?? before.sendsIdentity,
    sendsRequestContext: body.broadcast_generation_request_context ?? before.sendsRequestContext,
  };
}

function regionsOf(given: readonly string[]): string[] {
  return [...new Set(given.map((region) => (region === 'eu' ? 'europe' : region)))];
}

function checkedRules(rules: NonNullable<UpdateDestinationBody['filter_rules']> | null) {
  for (const [group, { rules: listed }] of (rules?.groups ?? []).entries()) {
    for (const [index, { value }] of listed.entries()) {
      if (typeof value === 'string') storable(`filter_rules.groups[${group}].rules[${index}].value`, value);
    }
  }
  return rules;
}

/** `Destination` in `openapi.json`. */
export function destinationReply(destination: ShownDestination): DestinationReply {
  return { ...destinationState(destination), delivery: deliveryOf(destination) };
}

/** What the audit log keeps of it. Secrets are masked. */
export function destinationState(destination: ShownDestination): Omit<DestinationReply, 'delivery'> {
  return {
    id: destination.id,
    type: destination.type,
    name: destination.name,
    workspace_id: destination.workspaceId,
    config: destination.config,
    enabled: destination.enabled,
    privacy_mode: destination.privacyMode,
    sampling_rate: destination.samplingRate,
    regions: [...destination.regions],
    api_key_hashes: destination.allowedKeyHashes && [...destination.allowedKeyHashes],
    filter_rules: destination.filterRules,
    broadcast_generation_cost: destination.sendsCost,
    broadcast_generation_identity: destination.sendsIdentity,
    broadcast_generation_request_context: destination.sendsRequestContext,
    created_at: destination.createdAt.toISOString(),
    updated_at: destination.updatedAt.toISOString(),
  };
}

function deliveryOf({ delivered, dropped, waiting, deliveredAt, failedAt, lastError }: ShownDestination) {
  const isFailing = failedAt !== null && (deliveredAt === null || failedAt > deliveredAt);
  return {
    status: isFailing ? 'failing' : deliveredAt === null ? 'idle' : 'delivering',
    delivered: Number(delivered),
    dropped: Number(dropped),
    waiting,
    delivered_at: deliveredAt?.toISOString() ?? null,
    failed_at: failedAt?.toISOString() ?? null,
    last_error: lastError,
  };
}

export function destinationResource({ id, workspaceId }: ShownDestination) {
  return { resourceType: 'destination', resourceId: id, workspaceId };
}
