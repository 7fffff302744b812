/** The words of a text as they are compared: without case, accents and English plural endings; pairs of characters in scripts without spaces. */

const LONGEST_WORD = 64;
const UNSPACED = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}';
const UNSPACED_RUN = new RegExp(`[${UNSPACED}]+`, 'gu');
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'u');

/** In the order of the text, with repetitions. */
export function termsOf(text: string): string[] {
  const plain = text.normalize('NFD').replace(/\p{M}/gu, '').normalize('NFKC').toLowerCase();
  const words = plain.replace(UNSPACED_RUN, ' $& ').match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.flatMap((word) => (IS_UNSPACED.test(word) ? pairs(word) : singular(word.slice(0, LONGEST_WORD))));
}

function pairs(run: string): string[] {
  const characters = [...run];
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, index) => characters[index]! + character);
}

/** Donna Harman's S-stemmer. */
function singular(word: string): string {
  if (word.length < 4 || !word.endsWith('s')) return word;
  if (word.endsWith('ies')) return /[ea]ies$/.test(word) ? word : `${word.slice(0, -3)}y`;
  if (word.endsWith('es')) return /[aeo]es$/.test(word) ? word : word.slice(0, -1);
  return /[us]s$/.test(word) ? word : word.slice(0, -1);
}
