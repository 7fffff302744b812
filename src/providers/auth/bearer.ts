/** Bearer authentication. Without a credential there is no header, because local servers need none. */
export function bearer(credential: string | null): Record<string, string> {
  return credential === null ? {} : { authorization: `Bearer ${credential}` };
}
