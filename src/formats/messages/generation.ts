/**
 * The settings that the vendor's own models accept, by generation. Each generation rejects some settings of the
 * previous one, which fails the whole request (platform.claude.com: "Migration guide", "Adaptive thinking", "Structured
 * outputs", "Mid-conversation system messages"). Models with other names get the permissive defaults of `UNKNOWN`.
 */

/**
 * The version in `claude-opus-4-7`, `anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku@20241022`; never
 * part of a date.
 */
const VERSION = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

export interface Generation {
  /** Accepts schemas for answers and for call arguments. */
  schemas: boolean;
  /**
   * How thinking is requested: by a budget, `adaptive` with an effort, or either. `always`: by an effort, and thinking
   * cannot be disabled.
   */
  thinking: 'budget' | 'either' | 'adaptive' | 'always';
  /** Accepts the effort `xhigh`, which was introduced after `max`. */
  xhigh: boolean;
  /** Accepted sampling settings: both temperature and `top_p`, one of them, or none. */
  sampling: 'free' | 'one' | 'none';
  /** Continues an assistant message that the client began. */
  prefill: boolean;
  /** Accepts a system message after a user turn. */
  lateSystem: boolean;
}

const UNKNOWN: Generation = {
  schemas: true,
  thinking: 'either',
  xhigh: true,
  sampling: 'free',
  prefill: true,
  lateSystem: false,
};

/** Model lines that always think. */
const ALWAYS = /claude-(?:fable|mythos)-/;

export function generationOf(model: string): Generation {
  const always = ALWAYS.test(model);
  const match = VERSION.exec(model);
  if (match === null) {
    return always ? { ...UNKNOWN, thinking: 'always', sampling: 'none', prefill: false } : UNKNOWN;
  }
  const version = Number(match[1]) * 100 + Number(match[2] ?? 0);
  // In the fourth generation only Opus got each of these; the other lines follow with the fifth.
  const from = (minor: number) => version >= 500 || (version >= 400 + minor && model.includes('opus'));
  return {
    schemas: version >= 401,
    thinking: always ? 'always' : from(7) ? 'adaptive' : version >= 406 ? 'either' : 'budget',
    xhigh: from(7),
    sampling: from(7) ? 'none' : version >= 401 ? 'one' : 'free',
    prefill: version < 406,
    lateSystem: from(8),
  };
}
