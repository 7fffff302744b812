/**
 * The finder of names of persons, by a gazetteer (`gazetteer.json`) and the words around them. One pass over the words;
 * decision 028 says why there is no language model.
 */
import gazetteer from './gazetteer.json' with { type: 'json' };
import type { Span } from './reading.ts';

/** Words of a text, and whether a name may continue from the word before: with a space, a comma or an initial's dot. */
interface Word extends Span {
  text: string;
  lower: string;
  capital: boolean;
  /** What separates it from the word before. */
  gap: 'space' | 'comma' | 'other';
  /** At the start of a sentence, where every word has a capital. */
  begins: boolean;
}

interface Lists {
  first: ReadonlySet<string>;
  last: ReadonlySet<string>;
  /** Common words of several languages; a name among them needs more evidence. */
  words: ReadonlySet<string>;
}

let loaded: Lists | undefined;

/** Parsed on first use: most installations have no such filter. */
function lists(): Lists {
  const set = (text: string) => new Set(text.split(' '));
  loaded ??= { first: set(gazetteer.first), last: set(gazetteer.last), words: set(gazetteer.words) };
  return loaded;
}

const WORD = /\p{L}+(?:['’-]\p{L}+)*/gu;
/** A name has at most this many words. */
const MOST_WORDS = 6;

const listOf = (text: string) => new Set(text.split(' '));
const TITLES = listOf(
  'mr mrs ms miss mx dr prof professor doctor herr frau monsieur madame mme mlle senor senora sr sra srta signor signora sig dott dottor don dona sir lady lord sheikh sheikha hajji rabbi imam father sister brother captain capt colonel col general gen sergeant sgt lieutenant lt judge justice senator sen president chancellor nurse inspector detective officer pan pani shri smt kumari ustad uncle aunt auntie oom tante tannie',
);
/** Titles that are ordinary words too. */
const WEAK_TITLES = listOf(
  'father sister brother general judge justice nurse officer president captain don sig pan sen gen lord lady uncle aunt doctor professor miss col inspector detective',
);
const PARTICLES = listOf(
  'van von de der den del della di da dos das do du la le al el bin ibn bint ben abu ter ten zu zur y e af av san st',
);
/** Before a single first name. */
const CUES = listOf(
  'with ask tell told asked met meet call called email emailed contact ping hi hello hey dear thanks cc bcc attn regards sincerely from by to for named name was and husband wife son daughter mother father brother sister friend colleague manager boss patient client customer employee neighbour neighbor cousin uncle aunt nephew niece grandma grandpa partner boyfriend girlfriend fiance fiancee mit von fur an bei avec para com con per voor mam mum dad',
);
/** Before a comma and a single first name. */
const GREETINGS = listOf(
  'thanks regards sincerely hi hello hey dear cheers yours best love wishes faithfully truly saludos cordialement grusse grusse gruss',
);
/** After a single first name. */
const VERBS = listOf(
  'said says told asked wrote writes called calls lives lived works worked thinks thought wants wanted needs needed left moved joined signed sent paid owes went came is was has had will would could can and agreed replied answered confirmed complained reported earns suffers born died married loves hates likes',
);
/** Last words that make a run of capitalized words something other than a name. */
const THINGS = listOf(
  'street st avenue ave road rd lane drive boulevard blvd square place way court airport station river lake mountain mount bay beach valley creek hill hills park forest island islands ocean sea desert bridge tower building hall house hotel inn palace castle church cathedral temple mosque stadium arena theatre theater museum gallery library university college school academy institute hospital clinic center centre foundation trust bank group holdings company corp corporation inc ltd llc gmbh ag plc sa bv oy ab systems solutions software technologies labs partners associates consulting motors airlines airways records studios pictures press news times post journal magazine festival award awards prize medal cup open league club team act law bill treaty agreement theorem lemma algorithm equation distribution method test syndrome disease effect principle paradox constant number series transform model network machine project framework library protocol day week month year county city town village state province district region republic kingdom empire war battle revolution age era street east west north south upper lower new old great grand fort port cape point falls springs cross airport terminal edition version release conference summit university cup rules index function class type api sdk cli server client database table column field key value error exception event handler manager service controller module package test suite street plaza crossing junction line express limited team department committee commission council ministry office agency union association society federation party church order saint sauce salad sandwich cheese wine beer whisky whiskey coffee tea cake chair lamp desk shelf collection scale',
);
/** What people say before their name. The name may be written in lower case. */
const INTRODUCTION =
  /(?:my (?:full |first |last |legal )?name(?: is|'s|:)|name:|i am|i'm|this is|call(?:ed)? me|signed,?|me llamo|mi nombre es|je m'appelle|je suis|ich hei(?:ss|ß)e|mein name ist|ich bin|mi chiamo|sono|meu nome e|me chamo|mijn naam is|ik heet|ik ben|jag heter|mitt namn ar|nazywam sie|benim adim|nama saya|jmenuji se|a nevem|numele meu este)[ ]{1,3}$/i;
/** Phrases that also introduce other things than names. */
const WEAK_INTRODUCTION = /(?:i am|i'm|this is|je suis|ich bin|sono|ik ben|call(?:ed)? me|signed,?)[ ]{1,3}$/i;
const LONGEST_INTRODUCTION = 28;

export function personNames(text: string): Span[] {
  const known = lists();
  const words = wordsOf(text);
  const spans: Span[] = [];
  for (let at = 0; at < words.length; ) {
    const end = nameFrom(words, at, text, known);
    if (end === undefined) at += 1;
    else {
      spans.push({ start: words[at]!.start, end: words[end - 1]!.end });
      at = end;
    }
  }
  return spans;
}

function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let before = 0;
  for (const match of text.matchAll(WORD)) {
    const [word] = match;
    const start = match.index;
    const end = start + word.length;
    const between = text.slice(Math.max(before, start - 8), start);
    const bare = word.includes("'") || word.includes('’') ? word.replace(/['’]s$/i, '') : word;
    const previous = words.at(-1);
    const dotted =
      previous?.capital === true &&
      between.length < 4 &&
      /^\.? {0,2}$/.test(between) &&
      (isInitial(previous) || TITLES.has(previous.lower));
    const isPart = between !== ' ' && !dotted && start > 0 && /[\w@/\\.#$-]/.test(text[start - 1]!);
    words.push({
      text: bare,
      lower: lookedUp(bare),
      start,
      end: start + bare.length,
      capital: isCapitalized(bare) && !isPart && !isFollowed(text, end),
      gap: gapOf(between, dotted, isPart),
      begins: previous === undefined || (between !== ' ' && /[.!?\n:>*"“-]\s*$/.test(between)),
    });
    before = end;
  }
  return words;
}

function gapOf(between: string, dotted: boolean, isPart: boolean): Word['gap'] {
  if (between === ' ' || dotted) return 'space';
  if (between === '' || isPart) return 'other';
  if (/^ {1,3}$/.test(between)) return 'space';
  return /^, {1,2}$/.test(between) ? 'comma' : 'other';
}

/** Part of an identifier, a path or a host name. */
function isFollowed(text: string, end: number): boolean {
  const next = text[end] ?? '';
  return /[\w@/\\$]/.test(next) || (next === '.' && /[a-z]/.test(text[end + 1] ?? ''));
}

/** Letters that do not decompose into a Latin letter and an accent. */
const BASES: Readonly<Record<string, string>> = {
  ł: 'l',
  đ: 'd',
  ø: 'o',
  ı: 'i',
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  þ: 'th',
  ð: 'd',
  '’': "'",
};

const ASCII = /^[a-z'-]*$/;

function lookedUp(word: string): string {
  const lower = word.toLowerCase();
  return ASCII.test(lower) ? lower : lower.replace(/[łđøıßæœþð’]/g, (letter) => BASES[letter]!);
}

/** Anna, McDonald, O'Brien, Jean-Luc, ANNA; not aNNA or getName. */
function isCapitalized(word: string): boolean {
  const code = word.charCodeAt(0);
  if (code >= 97 && code <= 122) return false;
  return /^(?:\p{Lu}{3,}(?:['’-]\p{Lu}+)*|(?:Mc|Mac|O['’]|D['’]|Al-|El-)?\p{Lu}\p{Ll}*(?:['’-]\p{Lu}?\p{Ll}+)*)$/u.test(
    word,
  );
}

function isInitial({ text }: Pick<Word, 'text'>): boolean {
  return text.length === 1 && text >= 'A' && text <= 'Z';
}

function parts(lower: string): string[] {
  return lower.includes('-') ? lower.split('-') : [lower];
}

function isFirst({ lower }: Word, { first }: Lists): boolean {
  return parts(lower).every((part) => first.has(part)) || first.has(lower.replace('-', ''));
}

function isLast({ lower }: Word, { last }: Lists): boolean {
  return (
    last.has(lower) || parts(lower).every((part) => last.has(part)) || /^(?:mc|mac|o'|d'|al-|el-)[a-z]{3,}$/.test(lower)
  );
}

/** In lower case. */
export function isCommonWord(word: string): boolean {
  return lists().words.has(word);
}

function isCommon({ lower }: Word, { words }: Lists): boolean {
  return words.has(lower);
}

/** The index after the name that begins at `at`; undefined if none does. */
function nameFrom(words: readonly Word[], at: number, text: string, known: Lists): number | undefined {
  const word = words[at]!;
  const introduced = introduction(text, word.start);
  if (introduced !== undefined) {
    const end = introducedName(words, at, introduced === 'weak', known);
    if (end !== undefined) return end;
  }
  if (!word.capital) return lowerCase(words, at, known);
  const titled = at > 0 && word.gap === 'space' && TITLES.has(words[at - 1]!.lower) && words[at - 1]!.capital;
  const run = runFrom(words, at);
  if (run - at > 0 && THINGS.has(words[run - 1]!.lower) && !titled) return undefined;
  if (titled && !THINGS.has(word.lower)) {
    const weak = WEAK_TITLES.has(words[at - 1]!.lower);
    if (!isCommon(word, known) || (!weak && run - at > 1) || isFirst(word, known)) {
      if (!weak || isFirst(word, known) || isLast(word, known)) return trimmed(words, at, run, known);
    }
  }
  return fullName(words, at, run, known) ?? commaName(words, at, known) ?? singleName(words, at, run, known);
}

/** The words with a capital, initials and particles that follow each other with a space. */
function runFrom(words: readonly Word[], at: number): number {
  let end = at + 1;
  while (end < words.length && end - at < MOST_WORDS) {
    const word = words[end]!;
    if (word.gap !== 'space') break;
    if (word.capital) end += 1;
    else if (PARTICLES.has(word.lower) && particlesLead(words, end)) end += 1;
    else break;
  }
  return end;
}

/** Particles and then a word with a capital. */
function particlesLead(words: readonly Word[], at: number): boolean {
  for (let next = at + 1; next < words.length && next - at <= 2; next++) {
    if (words[next]!.gap !== 'space') return false;
    if (words[next]!.capital) return true;
    if (!PARTICLES.has(words[next]!.lower)) return false;
  }
  return false;
}

/** Without common words at its end that are not in the lists of names. */
function trimmed(words: readonly Word[], at: number, run: number, known: Lists, least = 1): number {
  let end = run;
  while (end - at > least) {
    const last = words[end - 1]!;
    const isName = !isCommon(last, known) || isLast(last, known) || isFirst(last, known);
    if (isName && !PARTICLES.has(last.lower)) break;
    end -= 1;
  }
  return end;
}

/** A first name and a further name, or a surname and a first name. */
function fullName(words: readonly Word[], at: number, run: number, known: Lists): number | undefined {
  const [word, second] = [words[at]!, words[at + 1]];
  if (second === undefined || run - at < 2) return undefined;
  if (NO_NAMES.has(word.lower)) return undefined;
  if (VIETNAMESE.has(word.lower)) return run;
  const end = trimmed(words, at, run, known, 2);
  const further = words.slice(at + 1, end);
  const surname = further.findLast((each) => !isInitial(each) && !PARTICLES.has(each.lower));
  if (surname === undefined) return undefined;
  if (isInitial(word)) {
    // J. R. Tolkien
    return !isCommon(surname, known) && (further.some(isInitial) || isLast(surname, known)) ? end : undefined;
  }
  if (isFirst(word, known)) {
    if (!isCommon(word, known))
      return !word.begins || !isCommon(surname, known) || isLast(surname, known) ? end : undefined;
    return isLast(surname, known) && !isCommon(surname, known) ? end : undefined;
  }
  // Nguyen Van An, Tanaka Yuki
  if (isLast(word, known) && !isCommon(word, known)) {
    return further.some((each) => isFirst(each, known) && !isCommon(each, known)) ? end : undefined;
  }
  return undefined;
}

/** First words of place names that are also personal names. */
const NO_NAMES = listOf(
  'san santa santo sao saint st sri costa sierra puerto los las rio el la le new monte porto villa casa',
);
/** Surnames that come first and that little else begins with. */
const VIETNAMESE = listOf('nguyen tran pham hoang huynh phan truong bui duong ngo');

/** Doe, Jane */
function commaName(words: readonly Word[], at: number, known: Lists): number | undefined {
  const [word, second, third] = [words[at]!, words[at + 1], words[at + 2]];
  if (second === undefined || second.gap !== 'comma' || !second.capital) return undefined;
  if (!isLast(word, known) || isCommon(word, known) || !isFirst(second, known) || isCommon(second, known))
    return undefined;
  // A list of first names is not a surname and a first name.
  if (isFirst(word, known) && third !== undefined && third.gap === 'comma') return undefined;
  return third !== undefined && third.gap === 'space' && isInitial(third) ? at + 3 : at + 2;
}

/** A first name alone, between words that usually surround a name. */
function singleName(words: readonly Word[], at: number, run: number, known: Lists): number | undefined {
  const word = words[at]!;
  if (run - at > 1 || word.text.length < 3 || !isFirst(word, known) || isCommon(word, known)) return undefined;
  const before = words[at - 1];
  if (PLACES.has(word.lower) || (before !== undefined && word.gap === 'space' && NO_NAMES.has(before.lower)))
    return undefined;
  const after = words[at + 1];
  const cued =
    before !== undefined &&
    ((word.gap === 'space' && CUES.has(before.lower)) || (word.gap === 'comma' && GREETINGS.has(before.lower)));
  const says = after !== undefined && after.gap === 'space' && VERBS.has(after.lower);
  return cued || says ? at + 1 : undefined;
}

/** First names that are better known as places, weekdays, products or languages. */
const PLACES = listOf(
  'paris london berlin vienna madrid rome milano milan sofia sydney melbourne adelaide victoria charlotte austin dallas houston denver phoenix orlando jackson madison lincoln georgia virginia carolina dakota montana nevada alabama kenya china india israel jordan lebanon chad cuba malta cyprus asia africa america europe england ireland scotland france spain java ruby julia pascal ada crystal haskell kotlin django jenkins kafka cassandra alexa siri cortana gemini claude mercedes porsche lexus tesla oracle apple amazon victoria santiago san lima lucca florence verona siena valencia barcelona odessa kira jira figma miro slack lyon nancy brest orleans tours bern basel zurich geneva lugano helsinki oslo bergen trieste roma siena elba',
);

/** Two names in lower case that are not ordinary words. */
function lowerCase(words: readonly Word[], at: number, known: Lists): number | undefined {
  const [word, second] = [words[at]!, words[at + 1]];
  if (second === undefined || second.gap !== 'space' || word.text !== word.lower || second.text !== second.lower)
    return undefined;
  if (word.gap === 'other' && !word.begins && at > 0) return undefined;
  if (word.text.length < 3 || second.text.length < 3 || PLACES.has(word.lower)) return undefined;
  if (isCommon(word, known) || isCommon(second, known)) return undefined;
  if (!isFirst(word, known) || !isLast(second, known)) return undefined;
  const third = words[at + 2];
  return third !== undefined && third.gap === 'space' && THINGS.has(third.lower) ? undefined : at + 2;
}

function introduction(text: string, start: number): 'strong' | 'weak' | undefined {
  if (text[start - 1] !== ' ') return undefined;
  const before = text.slice(Math.max(0, start - LONGEST_INTRODUCTION), start);
  if (!INTRODUCTION.test(before)) return undefined;
  return WEAK_INTRODUCTION.test(before) ? 'weak' : 'strong';
}

/** Up to three words after `my name is`: with a capital, or first of a first name. */
function introducedName(words: readonly Word[], at: number, weak: boolean, known: Lists): number | undefined {
  const word = words[at]!;
  const named = isFirst(word, known) && !PLACES.has(word.lower);
  if (weak && (!named || isCommon(word, known))) return undefined;
  if (!weak && isCommon(word, known) && !named) return undefined;
  if (word.capital) return trimmed(words, at, runFrom(words, at), known);
  let end = at + 1;
  while (end < words.length && end - at < 3 && words[end]!.gap === 'space') {
    const next = words[end]!;
    if (isCommon(next, known) || !(isLast(next, known) || isFirst(next, known))) break;
    end += 1;
  }
  return end;
}
