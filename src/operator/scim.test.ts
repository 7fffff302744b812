import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CommandParts, UsageError } from './command.ts';
import { scimCommand } from './scim.ts';

test('wrong arguments are reported before anything is opened', async () => {
  // It is not read.
  const parts = {} as CommandParts;
  for (const [args, message] of [
    [[], /scim needs the noun token/],
    [['tokens'], /unknown: scim tokens/],
    [['token'], /needs an action/],
    [['token', 'make'], /unknown: scim token make/],
    [['token', 'create', '--limit', '5'], /limit/],
    [['token', 'list', 'all'], /all/],
    [['token', 'revoke'], /name one/],
  ] as const) {
    await assert.rejects(scimCommand(args, parts), (error: Error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, message);
      return true;
    });
  }
});
