/** Every service of this format speaks it in the same way. */
type CohereDialect = Record<string, never>;

declare module '../conversation/registry.ts' {
  interface Dialect {
    cohere?: CohereDialect;
  }
}
