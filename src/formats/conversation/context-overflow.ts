/**
 * Prompts that do not fit the context: the wordings of upstreams, and the figures in them. Agents compact their history
 * when they see the words of their own format, so every format reads these wordings and writes its own.
 */

/** Alternatives of one expression; all texts are compared in lower case. */
function anyOf(...wordings: readonly RegExp[]): RegExp {
  return new RegExp(wordings.map(({ source }) => source).join('|'));
}

const OVERFLOW = anyOf(
  // OpenAI, Azure, vLLM, SGLang, DeepSeek, Mistral, OpenRouter, Ollama, llama.cpp, LM Studio, MiniMax, Together.
  /context[ _-]?(length|window|size|limit|overflow)/,
  /max(imum)? (context|sequence|prompt|model|input) (length|size|tokens?)/,
  // Anthropic, Bedrock, Ollama, Perplexity, Cohere, AI21, Tencent.
  /(prompt|input|messages?|conversation|request)( length)?( is|_is|_)? ?too[ _]long/,
  /too[ _]many[ _]((input|prompt|context)[ _])?tokens/,
  // Gemini, Vertex, OpenAI, GitHub Copilot, xAI, Databricks, watsonx.
  /(tokens?|prompt|input|messages?)[^.]{0,60}\b(exceeds?|exceeded|cannot exceed)\b[^.]{0,60}(limit|maximum|max|context)/,
  /exceed\w*[^.]{0,40}(token limit|(max|maximum) (allowed )?(number of )?(input |prompt |message )?tokens)/,
  /prompt_tokens_exceeded|token[ _]limit[ _]exceeded|prompt exceeds max|exceed_context_size/,
  /input token count is \d+ but/,
  // Groq, Cerebras, Alibaba, SiliconFlow, TabbyAPI, NVIDIA.
  /reduce the length of (the|your) (messages|prompt|input)|reduce the input token count/,
  /range of input length should be/,
  /(length of prompt_tokens|prompt length|input length)[^.]{0,60}(must be less|greater|longer|larger)/,
  /(prompt|input) (contains|has)[^.]{0,40}\d+ (input )?tokens?, (but|too large|which)/,
  // Hugging Face's text generation.
  /inputs?`? (tokens \+ `?max_new_tokens|must have less than \d+ tokens)/,
  // OpenAI, for one text; names and ids are much shorter.
  /string too long[^.]{0,40}\. expected a string with maximum length \d{6,}/,
  // Z.AI, Alibaba, MiniMax, Volcengine.
  /prompt ?超长|(输入|上下文|提示词?|token)[^。]{0,12}(超长|超过|超出|过长)|token limit \(1039\)/,
);

/** Limits of an account, which another prompt would not change. */
const OF_ACCOUNT =
  /per[ _-]?(min|minute|day|hour|second)|\b[tr]p[md]\b|rate[ _-]?limit|quota|billing|credit|payload size/;

/** Statuses with which services say something else in words like these. */
const OTHER_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 404, 429]);

/**
 * Whether an upstream's error says that the prompt does not fit.
 * @param status of the answer; null inside of a stream
 * @param text its message and code, or the whole body where they are hard to find
 */
export function isContextOverflow(status: number | null, text: string): boolean {
  if (status !== null && (status < 400 || OTHER_STATUSES.has(status))) return false;
  const words = text.toLowerCase();
  return OVERFLOW.test(words) && !OF_ACCOUNT.test(words);
}

/** Tokens that an overflow names. */
export interface OverflowFigures {
  input: number;
  limit: number;
  /** What was asked for as output, where the prompt alone would fit. */
  output?: number;
}

const COUNT = String.raw`(\d[\d,]*)`;
/** Each has the groups of its `order`. */
const FIGURES: readonly { words: RegExp; order: readonly (keyof OverflowFigures)[] }[] = [
  { words: figures(`${COUNT} tokens? > ${COUNT}`), order: ['input', 'limit'] },
  { words: figures(`context limit: ${COUNT} \\+ ${COUNT} > ${COUNT}`), order: ['input', 'output', 'limit'] },
  // OpenAI's older models, DeepSeek, vLLM: prompt and output together.
  {
    words: figures(`context length is ${COUNT}.*\\(${COUNT} (?:in|of|from) .*?${COUNT} (?:in|for|of) `),
    order: ['limit', 'input', 'output'],
  },
  {
    words: figures(`too large: ${COUNT}.*context length is ${COUNT}.*has ${COUNT} input tokens`),
    order: ['output', 'limit', 'input'],
  },
  {
    words: figures(`context length is ${COUNT}.*(?:resulted in|requested(?: about)?|contains at least) ${COUNT}`),
    order: ['limit', 'input'],
  },
  { words: figures(`prompt length is ${COUNT} but the request contains ${COUNT}`), order: ['limit', 'input'] },
  {
    words: figures(`${COUNT}\\)?(?: tokens?\\)?)?,? (?:exceeds|is longer than|too large for)[^.]*?${COUNT}`),
    order: ['input', 'limit'],
  },
  { words: figures(`token limit: ${COUNT} \\(requested: ${COUNT}`), order: ['limit', 'input'] },
];

function figures(words: string): RegExp {
  return new RegExp(words, 'is');
}

/** The figures of an overflow's message; undefined where it names none, or such as contradict it. */
export function overflowFigures(message: string): OverflowFigures | undefined {
  const text = message.slice(0, 600);
  for (const { words, order } of FIGURES) {
    const found = words.exec(text);
    if (found === null) continue;
    const read: OverflowFigures = { input: 0, limit: 0 };
    order.forEach((name, index) => {
      read[name] = Number(found[index + 1]!.replaceAll(',', ''));
    });
    const { input, limit, output = 0 } = read;
    if (!(input > 0 && limit > 0 && input + output > limit)) return undefined;
    return input > limit ? { input, limit } : read;
  }
  return undefined;
}
