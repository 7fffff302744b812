/** The encoded forms in which a secret can be part of a longer text. */

/** Encoded forms of shorter secrets would match other text. */
const MIN_ENCODED_LENGTH = 8;

/** The secret as it is, in a JSON string, percent-encoded and in base64. The forms may repeat each other. */
export function secretForms(secret: string): string[] {
  const plain = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())];
  return secret.length < MIN_ENCODED_LENGTH ? plain : [...plain, ...base64Cores(secret)];
}

/**
 * The base64 characters of the secret inside a longer text (`user:secret`), in each of the three alignments and both
 * alphabets, without the edge characters, which depend on the neighbours.
 */
function base64Cores(secret: string): string[] {
  const cores: string[] = [];
  const bytes = Buffer.from(secret);
  for (let before = 0; before < 3; before += 1) {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    const start = Math.ceil((before * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    cores.push(padded.toString('base64').slice(start, end), padded.toString('base64url').slice(start, end));
  }
  return cores;
}
