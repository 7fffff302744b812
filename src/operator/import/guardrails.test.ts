import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { type GuardrailDraft, readGuardrails } from './guardrails.ts';

const read = (...params: object[]) => {
  const list = params.map((each, index) => ({ guardrail_name: `g${index}`, litellm_params: each }));
  const { guardrails, findings } = readGuardrails(stringify({ guardrails: list }));
  findings.sorted();
  return { guardrails, missing: findings.missing.map(({ path }) => path), different: findings.different };
};
const filtersOf = ({ builtins, patterns }: GuardrailDraft) => [
  ...builtins.map(({ slug, action, appliesTo }) => [slug, action, appliesTo?.join()]),
  ...patterns.map(({ pattern, action, label, appliesTo }) => [pattern, action, label, appliesTo.join()]),
];

test('entities of Presidio are built-in filters, in requests and unless its scope is input in answers', () => {
  const entities = { EMAIL_ADDRESS: 'MASK', CREDIT_CARD: 'BLOCK', PERSON: 'MASK', LOCATION: 'MASK', IBAN_CODE: 'MASK' };
  const params = { guardrail: 'presidio', mode: 'pre_call', pii_entities_config: entities };
  const { guardrails, missing, different } = read(params, {
    ...params,
    presidio_filter_scope: 'input',
    default_on: true,
  });
  const [both, input] = guardrails as [GuardrailDraft, GuardrailDraft];
  assert.deepEqual([both.isDefault, input.isDefault], [false, true]);
  assert.deepEqual(filtersOf(both), [
    ['email', 'redact', 'request,response'],
    ['credit-card', 'block', 'request,response'],
    ['person-name', 'redact', 'request,response'],
  ]);
  assert.deepEqual(filtersOf(input)[0], ['email', 'redact', 'request']);
  assert.deepEqual(
    missing,
    [0, 1].flatMap((at) =>
      ['LOCATION', 'IBAN_CODE'].map((name) => `guardrails[${at}].litellm_params.pii_entities_config.${name}`),
    ),
  );
  assert.equal(different.length, 2);
});

test('words and patterns of the content filter are patterns without regard to case', () => {
  const { guardrails, missing } = read({
    guardrail: 'litellm_content_filter',
    mode: ['pre_call', 'post_call'],
    patterns: [
      { pattern_type: 'prebuilt', pattern_name: 'us_ssn', action: 'BLOCK' },
      { pattern_type: 'prebuilt', pattern_name: 'passport_us', action: 'BLOCK' },
      { pattern_type: 'regex', pattern: 'ACME-[0-9]{4}', name: 'acme', action: 'MASK' },
      { pattern_type: 'regex', pattern: 'a{,3}b', name: 'foreign', action: 'MASK' },
      { pattern_type: 'regex', pattern: 'x', action: 'WARN' },
    ],
    blocked_words: [
      { keyword: 'Project X (new)', action: 'BLOCK' },
      { keyword: 'falcon', action: 'BLOCK' },
      { keyword: 'secret*', action: 'BLOCK' },
    ],
    categories: [{ category: 'harmful_violence', enabled: true }],
    blocked_words_file: '/words.yaml',
  });
  assert.deepEqual(filtersOf(guardrails[0]!), [
    ['ssn', 'block', 'request,response'],
    ['(?i)ACME-[0-9]{4}', 'redact', '[ACME_REDACTED]', 'request,response'],
    ['(?i)(?:Project X \\(new\\)|falcon)', 'block', '[KEYWORD_REDACTED]', 'request,response'],
  ]);
  assert.deepEqual(missing.map((path) => path.replace('guardrails[0].litellm_params.', '')).sort(), [
    'blocked_words[2].keyword',
    'blocked_words_file',
    'categories',
    'patterns[1]',
    'patterns[3].pattern',
    'patterns[4].action',
  ]);
});

test('unknown settings are listed, and a guardrail without any known one is not imported', () => {
  const refused: [object, string][] = [
    [{ guardrail: 'bedrock', mode: 'pre_call' }, 'guardrail'],
    [{ guardrail: 'constructor', mode: 'pre_call' }, 'guardrail'],
    [{ guardrail: 'hide-secrets', mode: 'logging_only' }, 'mode'],
    [{ guardrail: 'hide-secrets', mode: { tags: { a: 'pre_call' } } }, 'mode'],
    [{ guardrail: 'hide-secrets' }, 'mode'],
    [{ guardrail: 'hide-secrets', mode: 'pre_call', default_on: 'yes' }, 'default_on'],
    [{ guardrail: 'presidio', mode: 'pre_call', pii_entities_config: ['EMAIL_ADDRESS'] }, 'pii_entities_config'],
    [{ guardrail: 'presidio', mode: 'pre_call', pii_entities_config: { URL: 'MASK' } }, 'pii_entities_config.URL'],
    [{ guardrail: 'presidio', mode: 'pre_call', presidio_filter_scope: 'x' }, 'presidio_filter_scope'],
    [{ guardrail: 'litellm_content_filter', mode: 'pre_call', blocked_words: 'x' }, 'blocked_words'],
  ];
  for (const [params, member] of refused) {
    const { guardrails, missing } = read(params);
    assert.deepEqual(guardrails, [], JSON.stringify(params));
    assert.ok(missing.includes(`guardrails[0].litellm_params.${member}`), `${member}: ${missing}`);
  }
});

test('a parameter without a counterpart is listed beside what is imported', () => {
  const params = { guardrail: 'presidio', mode: 'pre_call', presidio_score_thresholds: { PERSON: 0.8 }, surprising: 1 };
  const { guardrails, missing } = read(params);
  assert.equal(guardrails[0]!.builtins.length, 6);
  for (const member of ['', '.presidio_score_thresholds', '.surprising'])
    assert.ok(missing.includes(`guardrails[0].litellm_params${member}`), member);
});
