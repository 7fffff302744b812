/** The pages of `docs/reference/` are what the code reads. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { REFERENCE, referencePages, undescribedMembers } from '../../build/reference.ts';

test('docs/reference has every variable, yaml member and command (otherwise: node build/reference.ts)', () => {
  const pages = referencePages();
  // Its tables come from runs against whole gateways.
  const measured = 'conformance.md';
  assert.deepEqual(readdirSync(REFERENCE).sort(), [...pages.keys(), measured].sort());
  for (const [name, text] of pages) assert.equal(readFileSync(path.join(REFERENCE, name), 'utf8'), text);
});

test('every member of the yaml file has a meaning in src/base/config/member-meanings.ts, and nothing else has', () => {
  assert.deepEqual(undescribedMembers(), { missing: [], superfluous: [] });
});
