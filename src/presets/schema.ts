/** Wire schemas of presets. */
import { type TSchema, Type } from 'typebox';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { closed, listOf, nullable, pageMembers } from '../http/contract.ts';

const Slug = Type.String({ description: 'As in the model name `@preset/<slug>`' });
export const PresetParams = Type.Object({ slug: Slug });
export const VersionParams = Type.Object({ slug: Slug, version: Type.String({ description: 'Its number' }) });

const workspace = {
  workspace_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'For management keys; default: the default workspace. Inference keys use their own workspace',
    }),
  ),
};
export const WorkspaceQuery = Type.Object(workspace, closed);
export const WorkspacePageQuery = Type.Object({ ...pageMembers, ...workspace }, closed);

const preset = {
  id: Type.String(),
  slug: Type.String(),
  name: Type.String(),
  description: nullable(Type.String()),
  status: Type.String({ description: '`active`' }),
  status_updated_at: nullable(Type.String()),
  workspace_id: nullable(Type.String()),
  creator_user_id: nullable(Type.String()),
  designated_version_id: nullable(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
};

const Version = Type.Object(
  {
    id: Type.String(),
    preset_id: Type.String(),
    version: Type.Integer({ description: 'From 1' }),
    format: Type.String({ description: '`chat`, `messages` or `responses`: the format of `config`' }),
    config: Type.Record(Type.String(), Type.Unknown(), { description: 'Members of requests of the format' }),
    system_prompt: nullable(Type.String()),
    creator_id: Type.String({ description: 'The member, or the organization for keys without a creator' }),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'PresetVersion' },
);

const WithVersion = Type.Object(
  { ...preset, designated_version: nullable(Version) },
  { $id: 'PresetWithDesignatedVersion' },
);

export const PresetList = listOf(Type.Object(preset, { $id: 'Preset' }));
export const PresetEnvelope = Type.Object({ data: WithVersion }, { $id: 'PresetEnvelope' });
export const VersionList = listOf(Version);
export const VersionEnvelope = Type.Object({ data: Version }, { $id: 'PresetVersionEnvelope' });

/** A request of the format with every member optional. */
export function settingsSchema({ schema }: ServedFormat): TSchema {
  const { required: _, $id, ...open } = schema as TSchema & { required?: string[]; $id: string };
  return { ...open, $id: `PresetFrom${$id}` } as TSchema;
}

export interface WorkspaceQueryValue {
  workspace_id?: string;
}
