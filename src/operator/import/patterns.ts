/** Regular expressions and words of LiteLLM's content filter, which Python searches without regard to case, as patterns here. */
import type { FilterAction } from '../../guardrails/index.ts';
import type { Findings, Path } from './findings.ts';
import { printable } from './findings.ts';
import type { Json, Members } from './values.ts';

interface Pattern {
  pattern: string;
  label: string | null;
}

interface PatternParts {
  /** `pattern_redaction_format`; null: LiteLLM's own. */
  format: Json;
  path: Path;
  findings: Findings;
}

/**
 * What Python and the engine read differently, so that a pattern would match something else: other escapes than these, `{,3}`,
 * and brackets or borders in classes.
 */
const FOREIGN =
  /\\(?![dDwWsSbBnrtfvA]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^\p{L}\p{N}])|\{,\d|\[\^?\]|\[[^\]]*(?:\\[bBA]|\[)/u;
/** In Python these match every script, here only ASCII; and there `$` also matches before a final line break. */
const NARROWER = /\\[dDwWsSbB]|\$/;

/** Undefined for one that cannot be taken over as it is; then it is a finding. */
export function patternOf({ pattern = null, name = null }: Members, parts: PatternParts): Pattern | undefined {
  const { path, findings } = parts;
  const at = [...path, 'pattern'];
  if (typeof pattern !== 'string' || pattern === '') {
    findings.lacks(at, 'is not a text; not imported');
    return undefined;
  }
  if (FOREIGN.test(pattern)) {
    findings.lacks(at, 'has a construct that would match something else here; not imported');
    return undefined;
  }
  if (NARROWER.test(pattern))
    findings.differs(
      at,
      'matches ASCII digits, letters and spaces only with \\d, \\w, \\s and \\b, and $ only at the very end',
    );
  return {
    pattern: `(?i)${pattern}`,
    label: labelOf(typeof name === 'string' && name !== '' ? name : 'custom_regex', parts),
  };
}

/** Null: the gateway's own. */
function labelOf(name: string, { format, path, findings }: PatternParts): string | null {
  const own = typeof format === 'string' && format !== '' ? format : '[{pattern_name}_REDACTED]';
  const label = own.replaceAll('{pattern_name}', () => printable(name).toUpperCase());
  if (label.length <= 100) return label;
  findings.differs(path, 'would have a label of more than 100 characters: [REDACTED] is written');
  return null;
}

/** One pattern for all words of an action; LiteLLM finds them within other words, too. */
export function wordsOf(
  words: readonly { keyword: string; action: FilterAction }[],
  label: string | null,
): (Pattern & { action: FilterAction })[] {
  const byAction = Map.groupBy(words, ({ action }) => action);
  return [...byAction].map(([action, some]) => {
    const texts = [...new Set(some.map(({ keyword }) => keyword.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')))];
    return { pattern: texts.length === 1 ? `(?i)${texts[0]}` : `(?i)(?:${texts.join('|')})`, action, label };
  });
}
