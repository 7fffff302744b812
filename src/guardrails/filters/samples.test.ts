/**
 * How well the built-in filters do, on samples of our own: texts in which what should be found stands in marks, and texts
 * in which nothing should be. The figures that the guide tells are the least that may come out here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { BUILTINS, type BuiltinSlug } from './builtins.ts';
import { Readings, type Span } from './reading.ts';

interface Sample {
  text: string;
  marked: Span[];
}

/** `⟦` and `⟧` mark what should be found; `~` only keeps a sample from looking like a leaked key. */
function samplesOf(file: string): Sample[] {
  const lines = readFileSync(`${import.meta.dirname}/samples/${file}.txt`, 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line) => {
    const marked: Span[] = [];
    let text = '';
    for (const character of line) {
      if (character === '⟦') marked.push({ start: text.length, end: text.length });
      else if (character === '⟧') marked.at(-1)!.end = text.length;
      else if (character !== '~') text += character;
    }
    return { text, marked };
  });
}

function measure(slug: BuiltinSlug, file: string) {
  const wrong: string[] = [];
  let [found, missed, invented] = [0, 0, 0];
  for (const { text, marked } of samplesOf(file)) {
    const { skeleton } = new Readings(text);
    const spans = BUILTINS[slug].find(skeleton.text).map((span) => skeleton.original(span));
    const meets = (a: Span, b: Span) => a.start < b.end && b.start < a.end;
    const hit = marked.filter((mark) => spans.some((span) => meets(span, mark))).length;
    const extra = spans.filter((span) => !marked.some((mark) => meets(span, mark))).length;
    found += hit;
    missed += marked.length - hit;
    invented += extra;
    if (hit < marked.length || extra > 0) wrong.push(`${hit}/${marked.length} +${extra}: ${text}`);
  }
  return { precision: found / (found + invented), recall: found / (found + missed), wrong };
}

/** Least precision and recall, as docs/guides/guardrails.md tells them. */
const TOLD: Record<BuiltinSlug, [file: string, precision: number, recall: number]> = {
  email: ['email', 1, 0.86],
  phone: ['phone', 1, 0.85],
  ssn: ['ssn', 1, 0.87],
  'credit-card': ['credit-card', 1, 1],
  'ip-address': ['ip-address', 1, 1],
  secrets: ['secrets', 1, 0.87],
  'regex-prompt-injection': ['prompt-injection', 1, 0.86],
};

for (const [slug, [file, precision, recall]] of Object.entries(TOLD)) {
  test(`${slug} finds at least ${recall * 100} % of the samples, and of what it finds ${precision * 100} % is right`, (t) => {
    const measured = measure(slug as BuiltinSlug, file);
    t.diagnostic(`${slug}: precision ${measured.precision.toFixed(3)}, recall ${measured.recall.toFixed(3)}`);
    assert.ok(measured.precision >= precision, measured.wrong.join('\n'));
    assert.ok(measured.recall >= recall, measured.wrong.join('\n'));
  });
}

test('finding takes time in line with the length, whatever the text', () => {
  const hostile = [
    'a',
    'a@',
    '1 ',
    '4111 ',
    'eyJ',
    'sk-',
    '://',
    'a:',
    '-----BEGIN PRIVATE KEY-----',
    'ignore ',
    '1.',
    '::',
    'password',
    '0 1',
    '(',
  ];
  for (const piece of hostile) {
    const text = piece.repeat(Math.ceil(200_000 / piece.length));
    for (const { find } of Object.values(BUILTINS)) assert.ok(Array.isArray(find(text)));
  }
});
