/**
 * What the vendor's own models take, by their generation: each one refuses some of what the one before took, and the whole
 * request because of it (platform.claude.com: "Migration guide", "Adaptive thinking", "Structured outputs",
 * "Mid-conversation system messages"). Nothing is known of models under other names: they are asked as they always were.
 */

/** The version in `claude-opus-4-7`, `anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-3-5-haiku@20241022`; no part of a date. */
const VERSION = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

export interface Generation {
  /** Takes a schema for its answer and for the arguments of its calls. */
  schemas: boolean;
  /**
   * How it is asked to think: by a budget, as much as it sees fit (`adaptive`, with an effort), or by either. `always`: by
   * an effort, and nobody can ask it not to.
   */
  thinking: 'budget' | 'either' | 'adaptive' | 'always';
  /** Knows the effort `xhigh`, which came behind `max`. */
  xhigh: boolean;
  /** How it may be told to sample: by both of temperature and `top_p`, by one of them, or by nothing. */
  sampling: 'free' | 'one' | 'none';
  /** Goes on in a message of the assistant that the client has begun. */
  prefill: boolean;
  /** Takes a system message behind a turn of the user. */
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

/** Lines that always think. */
const ALWAYS = /claude-(?:fable|mythos)-/;

export function generationOf(model: string): Generation {
  const always = ALWAYS.test(model);
  const match = VERSION.exec(model);
  if (match === null) {
    return always ? { ...UNKNOWN, thinking: 'always', sampling: 'none', prefill: false } : UNKNOWN;
  }
  const version = Number(match[1]) * 100 + Number(match[2] ?? 0);
  // Of the fourth generation the largest line came to each of these first, and the other lines with the fifth.
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
