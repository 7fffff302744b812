/** A customer's own keys at providers as a request meets them: from memory, those that its caller may use. */

/** Who asks, as far as own keys are concerned; a `Caller` is one. */
export interface OwnKeyCaller {
  readonly organizationId: string;
  readonly workspaceId: string;
  /** Of the key's row: a key that gets another secret stays. */
  readonly keyId: string;
  readonly userId: string | null;
}

/** One key of a customer's own, opened. Shared by all requests until anything about it changes. */
export interface OwnKey {
  /** UUID, as on the wire. */
  readonly id: string;
  readonly providerSlug: string;
  /** The credential, in the form in which one of this provider is configured. */
  readonly value: string;
  /** Tried after the customer's other keys. */
  readonly isFallback: boolean;
  /** The models that it may be used for are never asked over the gateway's own credentials. */
  readonly isRequired: boolean;
  /** The provider is never asked over the gateway's own credentials. */
  readonly isByokOnly: boolean;
  /** What the customer says of the provider's retention under this key; null: what the endpoint's own facts say. */
  readonly declaredZdr: boolean | null;
  readonly sortOrder: number;
}

export interface OwnKeys {
  /** Whether there are any at all: the usual case is none, and costs nothing. */
  readonly any: boolean;
  /**
   * Those that the caller may use for this model at this provider: by sort order, fallback ones last.
   *
   * @param provider id and kind of a configured provider
   */
  of(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): readonly OwnKey[];
  /**
   * Whether this model may not be asked at this provider over the gateway's own credentials, because one of the caller's
   * own keys says so: one that is `is_byok_only`, for whatever models it is, or one for this model that is `is_required`.
   * Also by the word of a key that cannot be opened, and so is not among those of `of`.
   */
  closes(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): boolean;
  /** Those that would be among `of`, if this machine could open them. */
  unopened(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): readonly OwnKey[];
}
