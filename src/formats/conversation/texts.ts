/** How the gateway reads and replaces the texts of a request, whatever its format. */
export interface TextVisitor {
  /**
   * Visits one text and returns its replacement, or the same text for no change.
   * @param byUser false if the user certainly did not write it (instructions, tools, the model's own turns)
   */
  text(text: string, byUser: boolean): string;
  /** Visits texts that a model reads as one; returns as many texts. Called before each of them is visited alone. */
  neighbours(texts: readonly string[], byUser: boolean): readonly string[];
}

/**
 * Visits in place every text of a body that may reach a model, names of members included. A guardrail also passes
 * single members of a body, so the meaning of a member must not depend on the others.
 */
export type VisitTexts = (body: Record<string, unknown>, visitor: TextVisitor) => void;
