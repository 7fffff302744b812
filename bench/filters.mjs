/**
 * The cost of guardrail filters on 10 KB of text, by engine: `node bench/filters.mjs [--batches 12] [--json]`. The native
 * engine is measured if the module `re2` is found (`NODE_PATH=/folder/node_modules` adds a folder). Figures are CPU time of the
 * thread in microseconds per text: the mean of all batches, and the minimum and maximum of a batch. Every case runs once in
 * each batch, so that other load on the machine affects all of them equally.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../src/base/clock.ts';
import { BUILTINS } from '../src/guardrails/filters/builtins.ts';
import { nativeModule } from '../src/guardrails/filters/engine.ts';
import { Filters } from '../src/guardrails/filters/filters.ts';
import { Effort } from '../src/guardrails/filters/patterns.ts';

const { values: options } = parseArgs({
  options: { batches: { type: 'string', default: '12' }, json: { type: 'boolean', default: false } },
});
const LENGTH = 10_240;
/** The system counts a thread's time by ticks of up to 4 ms, so a batch must be far longer. */
const BATCH_MS = 50;
const WARM_UP_CALLS = 3_000;

const ENGLISH =
  'The quarterly report shows that revenue in the northern region grew by 12 percent, while costs for storage, support and ' +
  'travel stayed flat. Please summarise the main points for the board, compare them with last year (2023), and list three risks. ';
const MANY_SCRIPTS =
  'Größe des Cafés où l’on mange — 東京の天気は晴れです。 こんにちは 😀 naïve résumé 中文文本处理 señor mañana Привет мир and some plain ' +
  'English words between ';
const repeated = (text) =>
  text
    .repeat(Math.ceil(LENGTH / text.length))
    .slice(0, LENGTH)
    .toWellFormed();
const TEXTS = { ASCII: repeated(ENGLISH), 'other scripts': repeated(MANY_SCRIPTS) };

/** Each names what it seeks. */
const NAMED = Array.from({ length: 20 }, (_, index) =>
  index % 2 === 0 ? `(?i)codename[ -]?zeta${index}\\b` : `PROJ${index}-\\d{3,6}`,
);
/** Ten of these are shapes of numbers and marks, without a word that a text could be searched for. */
const MIXED = [
  ...NAMED.slice(0, 10),
  '\\b[A-Z]{2}\\d{6}[A-D]\\b',
  '\\b\\d{4}-\\d{4}-\\d{4}\\b',
  '[A-Z]{3}-\\d{4,8}',
  '\\b\\d{2}\\.\\d{3}\\.\\d{3}-[0-9K]\\b',
  '\\b\\d{9,12}\\b',
  '#[0-9a-f]{6}\\b',
  '\\b[A-Z][0-9]{2}\\.[0-9]{1,2}\\b',
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}',
  '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d',
  '\\b[A-Z]{2}\\d{2}(?: ?\\d{4}){3,5}\\b',
];
/** Five of these are made of what stands everywhere, so that the engine goes through every text. */
const ANYWHERE = [...MIXED.slice(0, 15), '\\S{80}', '[^\\s,]{60}', '[^e]{90}', '(?i)[^aeiou]{40}', '[^ ]{50}'];

const builtins = Object.keys(BUILTINS).map((slug) => ({ slug, action: 'flag' }));
const patterns = (sources) => sources.map((pattern) => ({ pattern, action: 'flag' }));
const RULES = {
  'built-in filters': { builtins, patterns: [] },
  '20 patterns that name what they seek': { builtins: [], patterns: patterns(NAMED) },
  '20 patterns, half of them shapes': { builtins: [], patterns: patterns(MIXED) },
  '20 patterns, five of what stands everywhere': { builtins: [], patterns: patterns(ANYWHERE) },
  'built-in filters and the first 20': { builtins, patterns: patterns(NAMED) },
  'built-in filters and the second 20': { builtins, patterns: patterns(MIXED) },
  'built-in filters and the third 20': { builtins, patterns: patterns(ANYWHERE) },
};

async function casesOf(engine, native) {
  const cases = [];
  for (const [name, rules] of Object.entries(RULES)) {
    const filters = await Filters.of([{ guardrailId: 'bench', way: 'api-key', rules }], native);
    for (const [script, text] of Object.entries(TEXTS)) {
      const found = filters.matches(text, true, new Effort(systemClock)).length;
      if (found > 0) throw new Error(`${name} match ${found} times in ${script}: the case should match nothing`);
      cases.push({ engine, name, text: script, filters, texts: [{ text, byUser: true }], times: [] });
      const texts = text.match(/.{1,80}/gsu).map((line) => ({ text: line, byUser: true }));
      cases.push({ engine, name, text: `${script}, in lines of 80`, filters, texts, times: [] });
    }
  }
  return cases;
}

function run({ filters, texts }, calls) {
  for (let call = 0; call < calls; call++) filters.inEach(texts, new Effort(systemClock), refuseMatch);
}

function refuseMatch({ text }) {
  throw new Error(`something matches in ${text}: the cases should match nothing`);
}

const cases = await casesOf('re2js', null);
if (nativeModule() !== null) cases.push(...(await casesOf('re2', nativeModule())));
function processorUs(one, calls) {
  const before = process.threadCpuUsage();
  run(one, calls);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / calls;
}

for (const one of cases) one.calls = Math.ceil((BATCH_MS * 1_000) / processorUs(one, WARM_UP_CALLS));
for (let batch = 0; batch < Number(options.batches); batch++) {
  for (const one of cases) one.times.push(processorUs(one, one.calls));
}

const figures = cases.map(({ engine, name, text, times }) => ({
  engine,
  filters: name,
  text,
  'mean us': Math.round(times.reduce((sum, time) => sum + time) / times.length),
  least: Math.round(Math.min(...times)),
  most: Math.round(Math.max(...times)),
}));
if (options.json) console.log(JSON.stringify(figures, undefined, 2));
else console.table(figures);
if (nativeModule() === null && !options.json) console.log('The module `re2` was not found: only re2js was measured.');
