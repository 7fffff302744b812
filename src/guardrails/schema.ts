/** Wire schemas of guardrails; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed, listOf, nullable, pageMembers } from '../http/contract.ts';
import { VENDORS } from './vendors.ts';

export { DeletedEnvelope } from '../http/contract.ts';

/** Beyond these limits the filters would cost every request more than its answer is worth. */
export const MAX_FILTERS = 100;
const MAX_LISTED = 1_000;
const MAX_PATTERN_LENGTH = 100_000;
const MAX_ASSIGNED = 500;

const NameSchema = Type.String({ minLength: 1, maxLength: 200 });
const ActionSchema = Type.Union([Type.Literal('block'), Type.Literal('redact'), Type.Literal('flag')]);
const IntervalSchema = Type.Union([Type.Literal('daily'), Type.Literal('weekly'), Type.Literal('monthly')]);
const RegionSchema = Type.Union([Type.Literal('global'), Type.Literal('europe'), Type.Literal('us')]);
const NamesSchema = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: MAX_LISTED });
const ScopeSchema = Type.Union([Type.Literal('user_only'), Type.Literal('all_messages')]);

/** A Gatehouse extension. */
const ApplyToSchema = Type.Array(Type.Union([Type.Literal('request'), Type.Literal('response')]), {
  minItems: 1,
  maxItems: 2,
  description: 'Directions that the filter checks: requests, answers, or both. Default: requests',
});

const BuiltinInputSchema = Type.Object(
  {
    slug: Type.String({ minLength: 1, maxLength: 100 }),
    action: ActionSchema,
    label: Type.Optional(
      nullable(
        Type.String({
          maxLength: 100,
          description: 'Replacement for redacted text; the default depends on the filter',
        }),
      ),
    ),
    scan_scope: Type.Optional(ScopeSchema),
    apply_to: Type.Optional(nullable(ApplyToSchema)),
  },
  { ...closed, $id: 'BuiltinFilterInput' },
);

const PatternSchema = Type.Object(
  {
    pattern: Type.String({
      minLength: 1,
      maxLength: MAX_PATTERN_LENGTH,
      description: 'Regular expression in RE2 syntax',
    }),
    action: ActionSchema,
    label: Type.Optional(nullable(Type.String({ maxLength: 100, description: 'Replacement for redacted text' }))),
    apply_to: Type.Optional(nullable(ApplyToSchema)),
  },
  { ...closed, $id: 'PatternFilterInput' },
);

const flag = (description: string) => Type.Optional(nullable(Type.Boolean({ description })));

/** Each vendor's member under our own name, and under the name that public clients use. */
const vendorFlags = Object.fromEntries(
  VENDORS.flatMap(({ token, alias }) => [
    [`enforce_zdr_${token}`, flag(`Zero data retention for models of ${alias}`)],
    [`enforce_zdr_${alias}`, flag(`Alias of enforce_zdr_${token}`)],
  ]),
);

const writable = {
  description: Type.Optional(nullable(Type.String({ maxLength: 1000 }))),
  allowed_data_regions: Type.Optional(nullable(Type.Array(RegionSchema, { minItems: 1, maxItems: 10 }))),
  allowed_models: Type.Optional(nullable(NamesSchema)),
  allowed_providers: Type.Optional(nullable(NamesSchema)),
  ignored_models: Type.Optional(nullable(NamesSchema)),
  ignored_providers: Type.Optional(nullable(NamesSchema)),
  content_filter_builtins: Type.Optional(nullable(Type.Array(BuiltinInputSchema, { maxItems: MAX_FILTERS }))),
  content_filters: Type.Optional(nullable(Type.Array(PatternSchema, { maxItems: MAX_FILTERS }))),
  enable_free_model_publication: flag('False excludes free endpoints that publish prompts'),
  enable_free_model_training: flag('False excludes free endpoints that train on prompts'),
  enable_paid_model_training: flag('False excludes paid endpoints that train on prompts'),
  enforce_zdr: Type.Optional(
    nullable(
      Type.Boolean({ deprecated: true, description: 'Copied into every per-vendor member that is absent or null' }),
    ),
  ),
  enforce_zdr_other: flag('Zero data retention for models of all other vendors'),
  allow_safety_retention_vendor_c: flag(
    'False: for google models, retention for safety does not count as zero data retention',
  ),
  allow_safety_retention_google: flag('Alias of allow_safety_retention_vendor_c'),
  allow_safety_retention_other: flag('The same for models of all other vendors'),
  include_byok_in_budgets: Type.Optional(Type.Boolean()),
  limit_usd: Type.Optional(
    nullable(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1e9,
        description: 'Limit per key or member; requires reset_interval',
      }),
    ),
  ),
  reset_interval: Type.Optional(nullable(IntervalSchema)),
};

export const CreateGuardrailSchema = Type.Object(
  { name: NameSchema, workspace_id: Type.Optional(Type.String({ format: 'uuid' })), ...writable, ...vendorFlags },
  { ...closed, $id: 'CreateGuardrail' },
);
export const UpdateGuardrailSchema = Type.Object(
  { name: Type.Optional(NameSchema), ...writable, ...vendorFlags },
  { ...closed, $id: 'UpdateGuardrail' },
);

export const GuardrailParamsSchema = Type.Object({ id: Type.String({ description: 'UUID of the guardrail' }) });

export const ListGuardrailsQuerySchema = Type.Object(
  { ...pageMembers, workspace_id: Type.Optional(Type.String({ format: 'uuid' })) },
  closed,
);

const shownList = nullable(Type.Array(Type.String()));
const shownFlag = nullable(Type.Boolean());

const GuardrailSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: nullable(Type.String()),
    workspace_id: nullable(Type.String()),
    allowed_data_regions: shownList,
    allowed_models: shownList,
    allowed_providers: shownList,
    ignored_models: shownList,
    ignored_providers: shownList,
    content_filter_builtins: nullable(
      Type.Array(
        Type.Object({
          slug: Type.String(),
          action: Type.String(),
          label: Type.String(),
          scan_scope: Type.Optional(Type.String()),
          apply_to: Type.Optional(Type.Array(Type.String())),
        }),
      ),
    ),
    content_filters: nullable(
      Type.Array(
        Type.Object({
          pattern: Type.String(),
          action: Type.String(),
          label: nullable(Type.String()),
          apply_to: Type.Optional(Type.Array(Type.String())),
        }),
      ),
    ),
    enable_free_model_publication: shownFlag,
    enable_free_model_training: shownFlag,
    enable_paid_model_training: shownFlag,
    enforce_zdr: shownFlag,
    enforce_zdr_other: shownFlag,
    ...(Object.fromEntries(
      VENDORS.flatMap(({ token, alias }) => [
        [`enforce_zdr_${token}`, shownFlag],
        [`enforce_zdr_${alias}`, shownFlag],
      ]),
    ) as Record<string, typeof shownFlag>),
    allow_safety_retention_vendor_c: shownFlag,
    allow_safety_retention_google: shownFlag,
    allow_safety_retention_other: shownFlag,
    include_byok_in_budgets: Type.Boolean(),
    limit_usd: nullable(Type.Number()),
    reset_interval: nullable(Type.String()),
    created_at: Type.String(),
    updated_at: nullable(Type.String()),
  },
  { $id: 'Guardrail' },
);

export const GuardrailEnvelope = Type.Object({ data: GuardrailSchema }, { $id: 'GuardrailEnvelope' });
export const GuardrailListEnvelope = listOf(GuardrailSchema);

export const KeyHashesSchema = Type.Object(
  { key_hashes: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: MAX_ASSIGNED }) },
  { ...closed, $id: 'KeyHashes' },
);
export const MemberIdsSchema = Type.Object(
  {
    member_user_ids: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      minItems: 1,
      maxItems: MAX_ASSIGNED,
    }),
  },
  { ...closed, $id: 'MemberIds' },
);
export const AssignedEnvelope = Type.Object({ assigned_count: Type.Integer() }, { $id: 'Assigned' });
export const UnassignedEnvelope = Type.Object({ unassigned_count: Type.Integer() }, { $id: 'Unassigned' });

const assignment = {
  id: Type.String(),
  guardrail_id: Type.String(),
  assigned_by: nullable(Type.String()),
  created_at: Type.String(),
};
const KeyAssignment = Type.Object(
  { ...assignment, key_hash: Type.String(), key_name: Type.String(), key_label: Type.String() },
  { $id: 'KeyAssignment' },
);
const MemberAssignment = Type.Object(
  { ...assignment, user_id: Type.String(), organization_id: Type.String() },
  { $id: 'MemberAssignment' },
);
export const KeyAssignmentsEnvelope = listOf(KeyAssignment);
export const MemberAssignmentsEnvelope = listOf(MemberAssignment);

/** `guardrail.ts` reads the per-vendor members by name. */
export type GuardrailBody = Omit<Static<typeof UpdateGuardrailSchema>, 'name'> & { name?: string } & {
  [member: string]: unknown;
};
export type CreateGuardrailBody = GuardrailBody & { name: string; workspace_id?: string };
export type GuardrailReply = Static<typeof GuardrailSchema>;
export type ListGuardrailsQuery = Static<typeof ListGuardrailsQuerySchema>;
