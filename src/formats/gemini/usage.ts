/** Decodes `usageMetadata`. */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isImpossibleCount, listOf } from '../conversation/fields.ts';

const COUNTS = [
  'promptTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
];

/** Whether the record counts output. Early stream events count only the input. */
export function countsOutput(value: unknown): boolean {
  if (!isFields(value)) return false;
  return (
    value['candidatesTokenCount'] !== undefined || value['thoughtsTokenCount'] !== undefined || restOfTotal(value) > 0
  );
}

/** The part of the total that the named counts do not cover. */
function restOfTotal(record: Fields): number {
  const named = ['promptTokenCount', 'toolUsePromptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount'];
  return countOf(record['totalTokenCount']) - named.reduce((sum, name) => sum + countOf(record[name]), 0);
}

/**
 * `input` excludes cached tokens and includes what built-in tools read. Thoughts are added to the candidates unless the
 * total shows that they are included. Missing candidate counts are derived from the total. Undefined for a record
 * without a prompt count or with impossible counts.
 */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['promptTokenCount'] !== 'number') return undefined;
  if (COUNTS.some((name) => isImpossibleCount(value[name]))) return undefined;
  const [prompt, toolUse, cacheRead, counted, reasoning] = COUNTS.map((name) => countOf(value[name])) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const candidates = value['candidatesTokenCount'] === undefined ? Math.max(restOfTotal(value), 0) : counted;
  const total = countOf(value['totalTokenCount']);
  const inside = reasoning > 0 && reasoning <= candidates && total === prompt + toolUse + candidates;
  const usage: Usage = {
    input: Math.max(prompt + toolUse - cacheRead, 0),
    cacheRead,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output: inside ? candidates : candidates + reasoning,
    reasoning,
    native: { origin: 'gemini', value },
  };
  addMedia(usage, value);
  return usage;
}

function addMedia(usage: Usage, value: Fields): void {
  const read = modalities(value['promptTokensDetails'], value['toolUsePromptTokensDetails']);
  const written = modalities(value['candidatesTokensDetails']);
  if (read.IMAGE > 0) usage.inputImage = read.IMAGE;
  if (read.AUDIO > 0) usage.inputAudio = read.AUDIO;
  if (written.IMAGE > 0) usage.outputImage = written.IMAGE;
  if (written.AUDIO > 0) usage.outputAudio = written.AUDIO;
}

function modalities(...lists: unknown[]): { IMAGE: number; AUDIO: number } {
  const sums = { IMAGE: 0, AUDIO: 0 };
  for (const entry of lists.flatMap(listOf)) {
    const { modality, tokenCount } = fieldsOf(entry);
    if (modality === 'IMAGE' || modality === 'AUDIO') sums[modality] += countOf(tokenCount);
  }
  return sums;
}
