/**
 * Public keys of a JWT issuer (RFC 7517), from the yaml or the issuer's URL: selects the keys and members that can verify
 * signatures and drops everything else.
 */

/** The members of one key that a check needs. */
export type IssuerKey = Readonly<Record<string, string>>;

/** Algorithms of keys and tokens: asymmetric only, so that a public key cannot be used to sign. */
export const SIGNATURE_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

/** By `kty`: required members, and possible algorithms. */
const KINDS: Readonly<Record<string, { members: readonly string[]; algorithms: RegExp }>> = {
  RSA: { members: ['n', 'e'], algorithms: /^[RP]S/ },
  EC: { members: ['crv', 'x', 'y'], algorithms: /^ES/ },
  OKP: { members: ['crv', 'x'], algorithms: /^Ed/ },
};
const CURVES = new Set(['P-256', 'P-384', 'P-521', 'Ed25519']);
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
/** From 2,048 bits, the minimum considered safe, to 8,192, beyond which verification is too expensive. */
const [LEAST_BITS, MOST_BITS] = [2_048, 8_192];
/** Maximum length of `n` and `e` in base64url before conversion to numbers; allows a leading zero byte. */
const MAX_LENGTHS = { n: 1_368, e: 11 };
/** With an exponent of 1 the signature equals the text, which anyone can forge. */
const LEAST_EXPONENT = 3n;
const MAX_ID_LENGTH = 512;

/** The key, or a string with the problem, to be appended to its name. */
export function readIssuerKey(value: unknown): IssuerKey | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JWK';
  const jwk = value as Record<string, unknown>;
  const kind = Object.hasOwn(KINDS, String(jwk['kty'])) ? KINDS[String(jwk['kty'])] : undefined;
  if (kind === undefined) return 'must have the kty RSA, EC or OKP';
  if (PRIVATE_MEMBERS.some((name) => jwk[name] !== undefined))
    return 'must be a public key but has members of a private key';
  const { use, key_ops: uses, alg, kid } = jwk;
  const signs = (use ?? 'sig') === 'sig' && (uses === undefined || (Array.isArray(uses) && uses.includes('verify')));
  if (!signs) return 'must be a key for verifying signatures (use: sig)';
  const algorithms = SIGNATURE_ALGORITHMS.filter((name) => kind.algorithms.test(name)) as string[];
  if (alg !== undefined && !algorithms.includes(String(alg)))
    return `must state one of ${algorithms.join(', ')} as alg`;
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_ID_LENGTH)) return 'must have a string as kid';
  const read: Record<string, string> = { kty: String(jwk['kty']) };
  for (const name of kind.members) {
    const member = jwk[name];
    if (typeof member !== 'string' || !/^[A-Za-z0-9_-]+$/.test(member)) return `must have the member ${name}`;
    read[name] = member;
  }
  const { n: modulus, e: exponent, crv: curve } = read;
  const unsafe = modulus !== undefined && exponent !== undefined ? problemOfRsa(modulus, exponent) : undefined;
  if (unsafe !== undefined) return unsafe;
  if (curve !== undefined && !CURVES.has(curve)) return `must have one of the curves ${[...CURVES].join(', ')}`;
  return { ...read, ...(alg !== undefined && { alg: String(alg) }), ...(kid !== undefined && { kid }) };
}

/** A long member may still be a small number. */
function problemOfRsa(modulus: string, exponent: string): string | undefined {
  const bits = modulus.length > MAX_LENGTHS.n ? Number.POSITIVE_INFINITY : numberOf(modulus).toString(2).length;
  if (bits < LEAST_BITS || bits > MOST_BITS) return `must have from ${LEAST_BITS} to ${MOST_BITS} bits`;
  const usable =
    exponent.length <= MAX_LENGTHS.e && numberOf(exponent) >= LEAST_EXPONENT && numberOf(exponent) % 2n === 1n;
  return usable ? undefined : 'must have an odd exponent of 3 or more, with at most 64 bits';
}

/** RFC 7518, 2: Base64urlUInt. */
function numberOf(text: string): bigint {
  return BigInt(`0x0${Buffer.from(text, 'base64url').toString('hex')}`);
}
