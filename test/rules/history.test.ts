/** Commit subjects that `git log --oneline` can show. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { ROOT } from './source-files.ts';

/** The last commit before the rule. */
const RULE_SINCE = 'f9fb860';
const LONGEST = 72;
/** Subjects are imperative: "Add", not "Added", "Adds" or "Adding". */
const OTHER_MOOD =
  /^(?!(?:Bring|Embed|Feed|Ping|Seed|Speed)\b)(?:\w+(?:ed|ing)|Adds|Fixes|Makes|Removes|Updates|Changes)\b/;

function git(...args: string[]): string | undefined {
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

test('commit subjects are imperative and at most 72 characters long', (t) => {
  const subjects = git('log', '--no-merges', '--format=%h %s', `${RULE_SINCE}..HEAD`);
  if (subjects === undefined) {
    t.skip('the history is not here');
    return;
  }
  const wrong = subjects.split('\n').filter((line) => {
    const subject = line.slice(line.indexOf(' ') + 1);
    return subject.length > LONGEST || !/^[A-Z]/.test(subject) || subject.endsWith('.') || OTHER_MOOD.test(subject);
  });
  assert.deepEqual(wrong, []);
});
