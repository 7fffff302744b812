/** Ways in which a service that speaks the messages form differs from its standard. Absent members mean the default. */
export interface MessagesDialect {
  /** Cache breakpoints that the service takes; further ones are left out. Default 4. */
  maxCacheMarks?: number;
  /** Request parameters that the service refuses; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
}
