/**
 * Detects prompts that exceed the context window by upstream error wording, and reads the token counts in it. Agents
 * compact their history when they see their own format's wording, so every format reads all wordings and writes its
 * own.
 */

/** Joins expressions into one alternation; texts are compared in lower case. */
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
  // Hugging Face Text Generation Inference.
  /inputs?`? (tokens \+ `?max_new_tokens|must have less than \d+ tokens)/,
  // OpenAI, for a single text; names and ids have much smaller limits.
  /string too long[^.]{0,40}\. expected a string with maximum length \d{6,}/,
  // Z.AI, Alibaba, MiniMax, Volcengine.
  /prompt ?超长|(输入|上下文|提示词?|token)[^。]{0,12}(超长|超过|超出|过长)|token limit \(1039\)/,
);

/** Account limits, which a different prompt would not avoid. */
const OF_ACCOUNT =
  /per[ _-]?(min|minute|day|hour|second)|\b[tr]p[md]\b|rate[ _-]?limit|quota|billing|credit|payload size/;

/** Statuses that services use with similar wording for other errors. */
const OTHER_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 404, 429]);

/**
 * Whether an upstream error reports a prompt that exceeds the context window.
 * @param status the response status; null within a stream
 * @param text the message and code, or the whole body where they cannot be located
 */
export function isContextOverflow(status: number | null, text: string): boolean {
  if (status !== null && (status < 400 || OTHER_STATUSES.has(status))) return false;
  const words = text.toLowerCase();
  return OVERFLOW.test(words) && !OF_ACCOUNT.test(words);
}

/** Token counts named by an overflow error. */
interface OverflowFigures {
  input: number;
  limit: number;
  /** The requested output, where the prompt alone would fit. */
  output?: number;
}

const COUNT = String.raw`(\d[\d,]*)`;
/** `words` captures one group per entry of `order`. */
const FIGURES: readonly { words: RegExp; order: readonly (keyof OverflowFigures)[] }[] = [
  { words: figures(`${COUNT} tokens? > ${COUNT}`), order: ['input', 'limit'] },
  { words: figures(`context limit: ${COUNT} \\+ ${COUNT} > ${COUNT}`), order: ['input', 'output', 'limit'] },
  // OpenAI's older models, DeepSeek, vLLM: prompt plus requested output.
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

/** The token counts in an overflow message; undefined if it names none or they do not exceed the limit. */
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
