/** What an identity provider says of a person. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * The claims of an ID token with those that only the user info has. That an address is verified is said of the address next
 * to it, so it is not taken over for another one.
 */
export function withUserInfo(token: Claims, info: Claims): Claims {
  const { email_verified: said, ...others } = token;
  const { email_verified: alsoSaid, ...more } = info;
  const isOfInfo = token['email'] === undefined;
  const verified = isOfInfo ? alsoSaid : token['email'] === info['email'] ? (said ?? alsoSaid) : said;
  return { ...more, ...others, ...(verified !== undefined && { email_verified: verified }) };
}
