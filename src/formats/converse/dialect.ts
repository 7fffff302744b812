/** How a service's Converse API differs from the standard. Absent members take the default. */
export interface ConverseDialect {
  /** Most cache points that the service accepts; further ones are dropped. Default 4. */
  maxCachePoints?: number;
}

declare module '../conversation/registry.ts' {
  interface Dialect {
    converse?: ConverseDialect;
  }
}
