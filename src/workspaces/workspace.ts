/** Workspaces without I/O: parsing management requests and rendering workspaces. */
import { isHash, keyNumber } from '../access/index.ts';
import { invalidField } from '../base/errors.ts';
import { isUuid } from '../base/ids.ts';
import { toWireName } from '../base/namespace.ts';
import { shownName } from '../base/storable.ts';
import { DISABLEABLE } from '../formats/server-tools/index.ts';
import { readRateLimits } from '../rate-limits/index.ts';
import { defaultGuardrailId } from './derived-id.ts';
import type { CreateWorkspaceBody, UpdateWorkspaceBody, WorkspaceReply } from './schema.ts';
import type { StoredWorkspace, WorkspaceSettings } from './store.ts';

const DIGITS = /^\d{1,16}$/;

const FRESH: Omit<WorkspaceSettings, 'name' | 'slug'> = {
  description: null,
  defaultTextModel: null,
  defaultImageModel: null,
  defaultProviderSort: null,
  promptCaching: null,
  disabledServerTools: null,
  ioLoggingKeyNumbers: null,
  ioLoggingSamplingRate: 1,
  dataDiscountLogging: false,
  broadcast: false,
  ioLogging: false,
  rateLimits: null,
};

/** Parses a workspace reference of a path. */
export function readReference(reference: string): { id: string } | { slug: string } {
  const id = reference.toLowerCase();
  return isUuid(id) ? { id } : { slug: reference };
}

/** True if the catalog has a model of this name. */
type KnowsModel = (name: string) => boolean;

/** The settings of a new workspace. Throws GatewayError 400 with the field path for what the schema cannot check. */
export function newSettings(body: CreateWorkspaceBody, knowsModel: KnowsModel): WorkspaceSettings {
  return changedSettings({ ...FRESH, name: '', slug: '' }, body, knowsModel);
}

/** The settings after a change: absent members stay, null clears. Throws like `newSettings`. */
export function changedSettings(
  before: WorkspaceSettings,
  body: UpdateWorkspaceBody,
  knowsModel: KnowsModel,
): WorkspaceSettings {
  const model = (path: 'default_text_model' | 'default_image_model', present: string | null): string | null => {
    const name = body[path];
    if (name === undefined) return present;
    if (name !== null && !knowsModel(name)) throw invalidField(path, `is not a model of the catalog: ${name}`);
    return name;
  };
  const { description, disabled_server_tools: tools, io_logging_api_key_ids: keys } = body;
  return {
    name: body.name === undefined ? before.name : shownName(body.name),
    slug: body.slug === undefined ? before.slug : freeSlug(body.slug),
    description: description === undefined ? before.description : description,
    defaultTextModel: model('default_text_model', before.defaultTextModel),
    defaultImageModel: model('default_image_model', before.defaultImageModel),
    defaultProviderSort:
      body.default_provider_sort === undefined ? before.defaultProviderSort : body.default_provider_sort,
    disabledServerTools: tools === undefined ? before.disabledServerTools : serverTools(tools),
    ioLoggingKeyNumbers: keys === undefined ? before.ioLoggingKeyNumbers : keyNumbers(keys),
    ioLoggingSamplingRate: body.io_logging_sampling_rate ?? before.ioLoggingSamplingRate,
    dataDiscountLogging: body.is_data_discount_logging_enabled ?? before.dataDiscountLogging,
    broadcast: body.is_observability_broadcast_enabled ?? before.broadcast,
    ioLogging: body.is_observability_io_logging_enabled ?? before.ioLogging,
    promptCaching: body.prompt_caching === undefined ? before.promptCaching : body.prompt_caching,
    rateLimits: body.rate_limits === undefined ? before.rateLimits : readRateLimits(body.rate_limits),
  };
}

/** @param toolName returns a server tool in the configured namespace's spelling */
export function workspaceReply(workspace: StoredWorkspace, toolName: (name: string) => string): WorkspaceReply {
  const { settings } = workspace;
  return {
    id: workspace.id,
    name: settings.name,
    slug: settings.slug,
    description: settings.description,
    created_at: workspace.createdAt.toISOString(),
    created_by: workspace.createdBy,
    updated_at: workspace.updatedAt?.toISOString() ?? null,
    default_guardrail_id: defaultGuardrailId(workspace.id),
    default_image_model: settings.defaultImageModel,
    default_text_model: settings.defaultTextModel,
    default_provider_sort: settings.defaultProviderSort,
    disabled_server_tools: settings.disabledServerTools?.map(toolName) ?? null,
    include_byok_in_budgets: workspace.includeByokInBudgets,
    io_logging_api_key_ids: settings.ioLoggingKeyNumbers && [...settings.ioLoggingKeyNumbers],
    io_logging_sampling_rate: settings.ioLoggingSamplingRate,
    is_data_discount_logging_enabled: settings.dataDiscountLogging,
    is_observability_broadcast_enabled: settings.broadcast,
    is_observability_io_logging_enabled: settings.ioLogging,
    prompt_caching: settings.promptCaching,
    rate_limits: settings.rateLimits,
  };
}

/** The resource of an audit entry about a workspace. */
export function workspaceResource({ id }: Pick<StoredWorkspace, 'id'>) {
  return { resourceType: 'workspace', resourceId: id, workspaceId: id };
}

/** Paths accept an id or a slug, so a slug must not look like an id. */
function freeSlug(slug: string): string {
  if (isUuid(slug)) throw invalidField('slug', 'must not be a UUID');
  return slug;
}

function serverTools(names: readonly string[] | null): string[] | null {
  if (names === null || names.length === 0) return null;
  const tools = names.map((name, index) => {
    const tool = toWireName(name);
    if (DISABLEABLE.includes(tool)) return tool;
    throw invalidField(`disabled_server_tools[${index}]`, `must be one of ${DISABLEABLE.join(', ')}`);
  });
  return [...new Set(tools)];
}

/** Accepts key numbers, also as text, and key hashes. */
function keyNumbers(ids: readonly (number | string)[] | null): number[] | null {
  if (ids === null) return null;
  const numbers = ids.map((id, index) => {
    const number = typeof id === 'number' ? id : isHash(id) ? keyNumber(id) : DIGITS.test(id) ? Number(id) : -1;
    if (Number.isSafeInteger(number) && number >= 0) return number;
    throw invalidField(`io_logging_api_key_ids[${index}]`, 'must be the number or the hash of a key');
  });
  return [...new Set(numbers)];
}
