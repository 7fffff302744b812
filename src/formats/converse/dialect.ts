/** Ways in which a service that speaks the converse form differs from its standard. Absent members mean the default. */
export interface ConverseDialect {
  /** Cache points that the service takes; further ones are left out. Default 4. */
  maxCachePoints?: number;
}
