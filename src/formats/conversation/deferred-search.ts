/**
 * How a model finds tools that it is not shown (`Conversation.deferred`), and how a format shows clients the searches
 * that the gateway ran between two of their turns. Clients send these parts back unchanged, and the conversation is
 * rebuilt from them.
 */
import type { OpaquePart, Part } from './conversation.ts';

/** Upstream names of the gateway's own two tools. */
export const SEARCH_TOOL = 'search_tools';
export const CALL_TOOL = 'call_tool';

export type DeferredSearch =
  | { type: 'bm25' | 'regex'; maxResults: number }
  /** The client runs the search: a tool of its own, whose result lists names of deferred tools under `resultKey`. */
  | { type: 'custom'; tool: string; resultKey: string; maxResults: number };

/** Tests whether a text matches; undefined for an invalid expression. Linear in the text for every expression. */
export type CompileRegex = (pattern: string) => ((text: string) => boolean) | undefined;

export interface SearchStep {
  id: string;
  tool: typeof SEARCH_TOOL | typeof CALL_TOOL;
  /** JSON text, as the model wrote it. */
  arguments: string;
  /** Names of the tools found; absent for a rejected call or an invalid search. */
  found?: readonly string[];
  /** The result sent to the model. */
  result: string;
}

/** A step read from a history; its result is computed again. */
export type PastStep = Omit<SearchStep, 'result'>;

/** The steps in an assistant message, by the index of the part that ends each; `taken` holds all their parts. */
export interface PastSteps {
  steps: ReadonlyMap<number, PastStep>;
  taken: ReadonlySet<number>;
}

export interface SearchTrace {
  /** The parts that show a step to clients. `index` counts the steps of the answer. */
  show(step: SearchStep, index: number): OpaquePart[];
  read(parts: readonly Part[]): PastSteps;
}

/** The reader of a format that shows each step as one part. @param stepOf undefined for any other part */
export function readEach(stepOf: (value: unknown) => PastStep | undefined): SearchTrace['read'] {
  return (parts) => {
    const steps = new Map<number, PastStep>();
    parts.forEach((part, at) => {
      const step = part.type === 'opaque' ? stepOf(part.value) : undefined;
      if (step !== undefined) steps.set(at, step);
    });
    return { steps, taken: new Set(steps.keys()) };
  };
}
