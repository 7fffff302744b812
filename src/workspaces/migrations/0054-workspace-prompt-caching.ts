import type { Migration } from '../../storage/migrate.ts';

export const workspacePromptCaching: Migration = {
  name: '0054-workspace-prompt-caching',
  sql: `
    -- off, translated or always; null follows the account setting.
    alter table workspaces add column prompt_caching text;
  `,
};
