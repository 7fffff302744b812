/** The wire format of presets and their versions. Pure. */
import { parseJson } from '../base/json.ts';
import type { StoredPreset, StoredVersion } from './store.ts';

/** Every preset is active: an unwanted preset is deleted. */
const ACTIVE = { status: 'active', status_updated_at: null };

export function presetReply(preset: StoredPreset) {
  return {
    id: preset.id,
    slug: preset.slug,
    name: preset.slug,
    description: null,
    ...ACTIVE,
    workspace_id: preset.workspaceId,
    creator_user_id: preset.creatorUserId,
    designated_version_id: preset.designatedVersionId,
    created_at: preset.createdAt.toISOString(),
    updated_at: preset.updatedAt.toISOString(),
  };
}

export function versionReply(version: StoredVersion) {
  const at = version.createdAt.toISOString();
  return {
    id: version.id,
    preset_id: version.presetId,
    version: version.version,
    format: version.format,
    config: parseJson(version.config),
    system_prompt: version.systemPrompt,
    creator_id: version.creatorId,
    created_at: at,
    updated_at: at,
  };
}

export function withVersion(preset: StoredPreset, version: StoredVersion) {
  return { ...presetReply(preset), designated_version: versionReply(version) };
}

/** The resource of an audit entry about a preset. */
export function presetResource({ id, workspaceId }: StoredPreset) {
  return { resourceType: 'preset', resourceId: id, workspaceId };
}
