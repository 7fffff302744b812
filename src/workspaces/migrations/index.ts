/** The tables of workspaces, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { workspaceSettings } from './0050-workspace-settings.ts';
import { workspaceMembers } from './0051-workspace-members.ts';
import { workspaceBudgets } from './0052-workspace-budgets.ts';
import { workspaceRateLimits } from './0053-workspace-rate-limits.ts';
import { workspacePromptCaching } from './0054-workspace-prompt-caching.ts';

export const workspaceMigrations: readonly Migration[] = [
  workspaceSettings,
  workspaceMembers,
  workspaceBudgets,
  workspaceRateLimits,
  workspacePromptCaching,
];
