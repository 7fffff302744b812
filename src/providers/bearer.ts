/** The usual signature: the credential as a bearer token. Without one the header is left out, as local servers want it. */
export function bearer(credential: string | null): Record<string, string> {
  return credential === null ? {} : { authorization: `Bearer ${credential}` };
}
