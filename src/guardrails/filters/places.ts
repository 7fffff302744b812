/**
 * Where in a text a built-in filter may find something, seen in one walk over it that all of them share. What is noted is
 * too much rather than too little: the patterns themselves decide.
 */

/** Digits with up to so many other characters between two belong to one number, for every finder. */
const WIDEST_GAP = 3;

export interface Places {
  /** Where the name of a service's token may begin. */
  readonly tokens: readonly number[];
  /** Where an attempt at injection may begin. */
  readonly injections: readonly number[];
  /** Digits of the longest number. */
  readonly digits: number;
}

const TOKEN = 1;
const INJECTION = 2;
const SLOTS = 32_768;

/** First four characters of what may stand at a word's beginning, small; `*` is a letter, digit or sign, `~` white space. */
const TOKEN_BEGINNINGS =
  'akia asia abia acca ghp_ gho_ ghu_ ghs_ ghr_ gith glpa gldt glrt sk-* sk_l sk_t rk_l rk_t pk_l pk_t whse xoxa xoxb xoxe xoxp xoxr xoxs xapp aiza ya29 gocs eyj* sg.* npm_ pypi hf_* dop_ shpa age-';
const INJECTION_BEGINNINGS =
  "igno disr forg over bypa negl disc drop do~* do~~ don' stop reve show prin outp repe disp leak expo tell give reci you~ act~ pret beco role enab ente acti swit enga deve jail god~ sudo dan~ with no~* no~~ not~ free imag beha new~ upda real actu syst safe admi verg miss oubl olvi desc";

/** All beyond ASCII, and the text's end, are one character: the first. */
const WHITE = [0, 9, 10, 11, 12, 13, 32];
const SIGNS = [...'0123456789abcdefghijklmnopqrstuvwxyz_-'].map((sign) => sign.charCodeAt(0));

const slots = new Uint8Array(SLOTS);

function enter(beginnings: string, flag: number): void {
  for (const beginning of beginnings.split(' ')) {
    const [first, second, third, fourth] = [...beginning].map((one) =>
      one === '*' ? SIGNS : one === '~' ? WHITE : [one.charCodeAt(0)],
    );
    for (const a of first!) {
      for (const b of second!) for (const c of third!) for (const d of fourth!) slots[slotOf(a, b, c, d)]! |= flag;
    }
  }
}
enter(TOKEN_BEGINNINGS, TOKEN);
enter(INJECTION_BEGINNINGS, INJECTION);

function slotOf(first: number, second: number, third: number, fourth: number): number {
  return (((first * 97 + second) * 89 + third) * 83 + fourth) & (SLOTS - 1);
}

const WORD = 1;
const DIGIT = 2;
/** Begins the marks of templates, which are no words. */
const MARK = 3;
/** By UTF-16 unit. */
const KINDS = new Uint8Array(65_536);
/** Small letters for capital ones, by UTF-16 unit; 0 beyond ASCII. */
const SMALL = new Uint8Array(65_536);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  SMALL[code] = character.toLowerCase().charCodeAt(0);
  if (/\d/.test(character)) KINDS[code] = DIGIT;
  else if (/\w/.test(character)) KINDS[code] = WORD;
  else if ('<[#'.includes(character)) KINDS[code] = MARK;
}

/** Room behind the text, so that four characters can be read from each place. */
const MARGIN = 4;
/** Reading from an array takes half of the time that reading from a string does; most texts fit into this one. */
const ordinary = new Uint16Array(32_768 + MARGIN);

function unitsOf(text: string): Uint16Array {
  const fits = text.length + MARGIN <= ordinary.length;
  const units = fits ? ordinary : new Uint16Array(text.length + MARGIN);
  Buffer.from(units.buffer).write(text, 'utf16le');
  return units.fill(0, text.length, text.length + MARGIN);
}

export function placesOf(text: string): Places {
  const tokens: number[] = [];
  const injections: number[] = [];
  const units = unitsOf(text);
  let digits = 0;
  let together = 0;
  let lastDigit = Number.NEGATIVE_INFINITY;
  let inWord = false;
  for (let at = 0; at < text.length; at++) {
    const kind = KINDS[units[at]!]!;
    if (kind === 0 || kind === MARK) {
      inWord = false;
      if (kind === MARK) injections.push(at);
      continue;
    }
    if (kind === DIGIT) {
      together = at - lastDigit <= WIDEST_GAP + 1 ? together + 1 : 1;
      if (together > digits) digits = together;
      lastDigit = at;
    }
    if (!inWord) {
      const [first, second] = [SMALL[units[at]!]!, SMALL[units[at + 1]!]!];
      const found = slots[slotOf(first, second, SMALL[units[at + 2]!]!, SMALL[units[at + 3]!]!)]!;
      if ((found & TOKEN) !== 0) tokens.push(at);
      if ((found & INJECTION) !== 0) injections.push(at);
    }
    inWord = true;
  }
  // What customers write does not stay in memory for longer than it is looked at.
  units.fill(0, 0, text.length);
  return { tokens, injections, digits };
}

/**
 * Every match of a pattern that can only begin at known places.
 * @param pattern sticky
 */
export function allAt(pattern: RegExp, text: string, places: readonly number[]): { start: number; end: number }[] {
  const spans: { start: number; end: number }[] = [];
  let from = 0;
  for (const start of places) {
    if (start < from) continue;
    pattern.lastIndex = start;
    if (!pattern.test(text)) continue;
    from = pattern.lastIndex;
    spans.push({ start, end: from });
  }
  return spans;
}
