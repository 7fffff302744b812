/** How a service of this format differs from the Gemini API. Absent members take the default. */
export interface GeminiDialect {
  /** Whether requests may carry billing labels (Vertex). Default no: labels are dropped and reported. */
  labels?: boolean;
}

declare module '../conversation/registry.ts' {
  interface Dialect {
    gemini?: GeminiDialect;
  }
}
