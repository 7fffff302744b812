/** The yaml in the guides for those who come from other gateways is valid. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadConfig } from '../../base/config.ts';
import { KINDS } from '../../providers/index.ts';

const GUIDES = `${import.meta.dirname}/../../../docs/guides`;

for (const guide of ['from-portkey', 'routing']) {
  test(`the yaml in ${guide}.md is accepted`, () => {
    const text = readFileSync(`${GUIDES}/${guide}.md`, 'utf8');
    const examples = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => yaml!);
    assert.ok(examples.length > 0);
    for (const yaml of examples) {
      const env = { GATEHOUSE_CONFIG: 'a.yaml', OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' };
      loadConfig({ kinds: KINDS, env, cwd: '/', cores: 1, readFile: () => yaml });
    }
  });
}
