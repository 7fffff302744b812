/** Folds a character and its combining marks, by Unicode's rules and by visual similarity. */

const MARKS = /\p{M}+/gu;
const DIGIT = /^\p{Nd}$/u;
const DASH = /^\p{Pd}$/u;

/** Normalizes compatibility characters. */
export function plainly(cluster: string): string {
  return cluster.normalize('NFKC');
}

/** Removes accents and replaces look-alikes. */
export function barely(cluster: string): string {
  let result = '';
  for (const character of cluster.normalize('NFKD').replace(MARKS, '').normalize('NFC')) result += lookAlike(character);
  return result;
}

function lookAlike(character: string): string {
  const known = LOOK_ALIKES.get(character);
  if (known !== undefined) return known;
  if (character.charCodeAt(0) < 0x80) return character;
  if (DASH.test(character)) return '-';
  return DIGIT.test(character) ? digitOf(character.codePointAt(0)!) : character;
}

/** The ten decimal digits of every script are consecutive code points. */
function digitOf(codePoint: number): string {
  let zero = codePoint;
  while (codePoint - zero < 9 && DIGIT.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String(codePoint - zero);
}

/** Letters of other scripts and of phonetics that look like Latin ones, and punctuation that looks alike. */
const LOOK_ALIKES = new Map(
  [
    ['аɑαａ', 'a'],
    ['Ьƅ', 'b'],
    ['сϲⅽ', 'c'],
    ['ԁⅾ', 'd'],
    ['еєҽ', 'e'],
    ['ғ', 'f'],
    ['ɡցǥ', 'g'],
    ['һհ', 'h'],
    ['іıιɩӏ', 'i'],
    ['јϳ', 'j'],
    ['кκ', 'k'],
    ['ⅼǀ', 'l'],
    ['м', 'm'],
    ['пոո', 'n'],
    ['оοσօ', 'o'],
    ['рρ', 'p'],
    ['ԛզ', 'q'],
    ['г', 'r'],
    ['ѕ', 's'],
    ['тτ', 't'],
    ['υսμ', 'u'],
    ['νѵ', 'v'],
    ['ѡԝω', 'w'],
    ['хχ', 'x'],
    ['уγү', 'y'],
    ['ᴢ', 'z'],
    ['АΑ', 'A'],
    ['ВΒ', 'B'],
    ['СϹ', 'C'],
    ['ЕΕ', 'E'],
    ['НΗ', 'H'],
    ['ІΙӀ', 'I'],
    ['Ј', 'J'],
    ['КΚ', 'K'],
    ['МΜ', 'M'],
    ['Ν', 'N'],
    ['ОΟ', 'O'],
    ['РΡ', 'P'],
    ['Ѕ', 'S'],
    ['ТΤ', 'T'],
    ['ХΧ', 'X'],
    ['ΥҮ', 'Y'],
    ['Ζ', 'Z'],
    ['ᴀ', 'a'],
    ['ʙ', 'b'],
    ['ᴄ', 'c'],
    ['ᴅ', 'd'],
    ['ᴇ', 'e'],
    ['ꜰ', 'f'],
    ['ɢ', 'g'],
    ['ʜ', 'h'],
    ['ɪ', 'i'],
    ['ᴊ', 'j'],
    ['ᴋ', 'k'],
    ['ʟ', 'l'],
    ['ᴍ', 'm'],
    ['ɴ', 'n'],
    ['ᴏ', 'o'],
    ['ᴘ', 'p'],
    ['ʀ', 'r'],
    ['ꜱ', 's'],
    ['ᴛ', 't'],
    ['ᴜ', 'u'],
    ['ᴠ', 'v'],
    ['ᴡ', 'w'],
    ['ʏ', 'y'],
    ['。․', '.'],
    ['⁄∕', '/'],
    ['−', '-'],
    ['’‘', "'"],
    ['“”', '"'],
  ].flatMap(([characters, letter]) => [...characters!].map((character) => [character, letter!] as const)),
);
