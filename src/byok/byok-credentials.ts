/** The BYOK credentials that a request may use, from memory. */

/** The caller, as far as BYOK access depends on it; implemented by `Caller`. */
export interface ByokCaller {
  readonly organizationId: string;
  readonly workspaceId: string;
  /** Id of the key's row, which a rotation does not change. */
  readonly keyId: string;
  readonly userId: string | null;
}

/** A decrypted BYOK credential. Shared by all requests until it changes. */
export interface ByokCredential {
  /** UUID, as on the wire. */
  readonly id: string;
  readonly providerSlug: string;
  /** The credential, in the format that the configuration uses for this provider. */
  readonly value: string;
  /** Used after the customer's other credentials. */
  readonly isFallback: boolean;
  /** The models it covers are never requested with the gateway's own credentials. */
  readonly isRequired: boolean;
  /** The provider is never called with the gateway's own credentials. */
  readonly isByokOnly: boolean;
  /**
   * The customer's statement about data retention with this credential; null means the endpoint's own policy applies.
   */
  readonly declaredZdr: boolean | null;
  readonly sortOrder: number;
}

export interface ByokCredentials {
  /** True if there are any. Usually there are none, and the check is free. */
  readonly any: boolean;
  /**
   * The credentials that the caller may use for this model at this provider, by sort order, fallback ones last.
   *
   * @param provider id and kind of a configured provider
   */
  of(caller: ByokCaller, provider: { id: string; kindId: string }, modelId: string): readonly ByokCredential[];
  /**
   * True if one of the caller's credentials forbids the gateway's own credentials for this model at this provider: one
   * with `is_byok_only`, whatever its models, or one for this model with `is_required`. This includes credentials that
   * cannot be decrypted, which `of` does not return.
   */
  closes(caller: ByokCaller, provider: { id: string; kindId: string }, modelId: string): boolean;
  /** The credentials that `of` would return if this machine could decrypt them. */
  undecrypted(caller: ByokCaller, provider: { id: string; kindId: string }, modelId: string): readonly ByokCredential[];
}
