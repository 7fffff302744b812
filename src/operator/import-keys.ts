/** `gatehouse import litellm-keys`: keys and teams of LiteLLM's proxy, into the database. */
import { defaultWorkspaceId, importKey, organizationId } from '../access/index.ts';
import { type Author, type Changed, changeAs, operatorAuthor } from '../audit/index.ts';
import { SHIPPED_FACTS } from '../catalog/index.ts';
import { importModelList } from '../guardrails/index.ts';
import type { Announce } from '../storage/change-everywhere.ts';
import type { Queryable } from '../storage/database.ts';
import { importTeam } from '../workspaces/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { counted, type Finding, printable } from './import/findings.ts';
import { type Drafts, type KeyDraft, readKeys, type TeamDraft } from './import/keys.ts';
import { fromLitellm } from './import/litellm.ts';
import { readAs } from './import/read-file.ts';
import { withDatabase } from './installation.ts';

interface Done {
  keys: number;
  workspaces: number;
  /** Keys that were here already. */
  known: number;
}

/** @param list prints findings under a title */
export async function importKeysCommand(
  args: readonly string[],
  parts: CommandParts,
  list: (title: string, findings: readonly Finding[]) => void,
): Promise<number> {
  const { values, positionals } = parseArguments(args, { config: { type: 'string' } }, true);
  if (positionals.length === 0) throw new UsageError('name the files with keys and teams');
  const config = values['config'] as string | undefined;
  const ids = config === undefined ? undefined : readAs(config, (text) => fromLitellm(text, SHIPPED_FACTS).ids);
  const now = parts.clock.now();
  const drafts = positionals.map((file) =>
    readAs(file, (text) => readKeys(text, { now, idOf: (name) => ids?.get(name) })),
  );
  const done = await withDatabase(parts, async (opened) => {
    const organization = await organizationId(opened.database);
    if (organization === undefined) throw new Error('there is no organization yet; start the gateway once');
    const author = operatorAuthor(organization, now);
    return changeAs(author, opened, (tx, changed, announce) => write(tx, drafts, { author, changed, announce }));
  });
  parts.out.print(`imported: ${counted(done.keys, 'key')}, ${counted(done.workspaces, 'workspace')}`);
  if (done.known > 0) parts.out.print(`here already and unchanged: ${counted(done.known, 'key')}`);
  for (const [index, { findings }] of drafts.entries()) {
    const name = drafts.length === 1 ? '' : ` (${printable(positionals[index]!)})`;
    list(`works differently${name}:`, findings.different);
    list(`not imported${name}:`, findings.missing);
  }
  return 0;
}

interface WriteParts {
  author: Author;
  changed: Changed;
  announce: Announce;
}

/** All or nothing. */
async function write(tx: Queryable, drafts: readonly Drafts[], parts: WriteParts): Promise<Done> {
  const { author } = parts;
  const general = await defaultWorkspaceId(tx, author.organizationId);
  if (general === undefined) throw new Error('the default workspace was deleted');
  const done: Done = { keys: 0, workspaces: 0, known: 0 };
  const keys = drafts.flatMap((draft) => draft.keys);
  const workspaces = await writeTeams(tx, teamsOf(keys, drafts), parts, done);
  /** By workspace and models. */
  const limited = new Map<string, { workspaceId: string; models: readonly string[]; keys: string[] }>();
  for (const key of keys) {
    const workspaceId = (key.teamId === undefined ? undefined : workspaces.get(key.teamId)) ?? general;
    const isNew = await importKey(tx, author, parts.announce, {
      ...{ hash: key.hash, label: key.label, workspaceId },
      settings: settingsOf(key),
    });
    done[isNew ? 'keys' : 'known'] += 1;
    if (!isNew || key.models === undefined) continue;
    const models = [...key.models].sort();
    const id = JSON.stringify([workspaceId, models]);
    const group = limited.get(id) ?? { workspaceId, models, keys: [] };
    limited.set(id, group);
    group.keys.push(key.hash);
  }
  for (const { workspaceId, models, keys: hashes } of limited.values()) {
    const place = { organizationId: author.organizationId, workspaceId, createdAt: new Date(author.at) };
    const name = `Models of imported keys: ${models.join(', ')}`.slice(0, 100);
    await importModelList(tx, parts.changed, { ...place, name, allowedModels: models, keys: hashes });
  }
  return done;
}

/** Teams that only keys name have no settings. */
function teamsOf(keys: readonly KeyDraft[], drafts: readonly Drafts[]): TeamDraft[] {
  const teams = new Map(drafts.flatMap((draft) => draft.teams).map((team) => [team.teamId, team]));
  for (const { teamId } of keys) {
    if (teamId === undefined || teams.has(teamId)) continue;
    const none = { budget: undefined, reset: null, rateLimits: {}, models: undefined };
    teams.set(teamId, { ...none, teamId, name: teamId.slice(0, 100) });
  }
  return [...teams.values()];
}

/** Ids of workspaces by LiteLLM's ids of teams. */
async function writeTeams(
  tx: Queryable,
  teams: readonly TeamDraft[],
  { author, changed }: WriteParts,
  done: Done,
): Promise<Map<string, string>> {
  const place = { organizationId: author.organizationId, createdAt: new Date(author.at) };
  const workspaces = new Map<string, string>();
  for (const { teamId, name, budget, reset, rateLimits, models } of teams) {
    const { id, isNew } = await importTeam(tx, changed, place, {
      settings: { name, slug: slugOf(name, teamId), rate_limits: rateLimits },
      // A workspace's budget cannot be nothing.
      budget: budget === undefined ? undefined : { interval: reset ?? 'lifetime', limitUsd: Math.max(budget, 1e-9) },
    });
    workspaces.set(teamId, id);
    if (!isNew) continue;
    done.workspaces += 1;
    if (models === undefined) continue;
    const list = { name: `Models of ${name}`.slice(0, 100), allowedModels: models, keys: 'all' } as const;
    await importModelList(tx, changed, { ...place, workspaceId: id, ...list });
  }
  return workspaces;
}

/** The same team gets the same slug, so that an import can be repeated with further keys. */
function slugOf(name: string, teamId: string): string {
  const words = name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const unique = teamId
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '')
    .slice(0, 8);
  return `${words.replace(/^-+|-+$/g, '').slice(0, 38)}-${unique}`.replace(/^-+|-+$/g, '') || 'team';
}

function settingsOf({ name, budget, reset, rateLimits, expiresAt, user }: KeyDraft) {
  return {
    name,
    ...(budget !== undefined && { limit: budget, limit_reset: reset }),
    ...(Object.keys(rateLimits).length > 0 && { rate_limits: rateLimits }),
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
    ...(user !== undefined && { external: { user } }),
  };
}
