/** LiteLLM's names of services (the part of `model` before the slash), and the kinds of providers here. */

export interface Service {
  kind: string;
  /** The variable that LiteLLM reads if the file has no `api_key`. */
  keyVariable?: string;
  /** Address for a kind without one. */
  baseUrl?: string;
  /** It has no known address and no kind of its own: the file must give `api_base`. */
  needsBase?: true;
}

/** Services that speak chat completions at an address of their own. */
function compatible(baseUrl: string, keyVariable: string): Service {
  return { kind: 'chat', baseUrl, keyVariable };
}

export const SERVICES: Readonly<Record<string, Service>> = {
  openai: { kind: 'openai', keyVariable: 'OPENAI_API_KEY' },
  'text-completion-openai': { kind: 'openai', keyVariable: 'OPENAI_API_KEY' },
  anthropic: { kind: 'anthropic', keyVariable: 'ANTHROPIC_API_KEY' },
  azure: { kind: 'azure', keyVariable: 'AZURE_API_KEY' },
  azure_ai: { kind: 'azure', keyVariable: 'AZURE_AI_API_KEY', needsBase: true },
  bedrock: { kind: 'bedrock' },
  bedrock_converse: { kind: 'bedrock' },
  vertex_ai: { kind: 'vertex' },
  vertex_ai_beta: { kind: 'vertex' },
  gemini: { kind: 'google', keyVariable: 'GEMINI_API_KEY' },
  cohere: { kind: 'cohere', keyVariable: 'COHERE_API_KEY' },
  cohere_chat: { kind: 'cohere', keyVariable: 'COHERE_API_KEY' },
  mistral: { kind: 'mistral', keyVariable: 'MISTRAL_API_KEY' },
  groq: { kind: 'groq', keyVariable: 'GROQ_API_KEY' },
  deepseek: { kind: 'deepseek', keyVariable: 'DEEPSEEK_API_KEY' },
  xai: { kind: 'xai', keyVariable: 'XAI_API_KEY' },
  zai: { kind: 'zai', keyVariable: 'ZAI_API_KEY' },
  moonshot: { kind: 'moonshot', keyVariable: 'MOONSHOT_API_KEY' },
  dashscope: { kind: 'alibaba', keyVariable: 'DASHSCOPE_API_KEY' },
  together_ai: { kind: 'together', keyVariable: 'TOGETHERAI_API_KEY' },
  fireworks_ai: { kind: 'fireworks', keyVariable: 'FIREWORKS_AI_API_KEY' },
  openrouter: { kind: 'openrouter', keyVariable: 'OPENROUTER_API_KEY' },
  perplexity: { kind: 'perplexity', keyVariable: 'PERPLEXITYAI_API_KEY' },
  huggingface: { kind: 'huggingface', keyVariable: 'HF_TOKEN' },
  deepinfra: { kind: 'deepinfra', keyVariable: 'DEEPINFRA_API_KEY' },
  cerebras: { kind: 'cerebras', keyVariable: 'CEREBRAS_API_KEY' },
  voyage: { kind: 'voyage', keyVariable: 'VOYAGE_API_KEY' },
  jina_ai: { kind: 'jina', keyVariable: 'JINA_AI_API_KEY' },
  recraft: { kind: 'recraft', keyVariable: 'RECRAFT_API_KEY' },
  stability: { kind: 'stability', keyVariable: 'STABILITY_API_KEY' },
  fal_ai: { kind: 'fal', keyVariable: 'FAL_AI_API_KEY' },
  black_forest_labs: { kind: 'black-forest-labs', keyVariable: 'BFL_API_KEY' },
  deepgram: { kind: 'deepgram', keyVariable: 'DEEPGRAM_API_KEY' },
  elevenlabs: { kind: 'elevenlabs', keyVariable: 'ELEVENLABS_API_KEY' },
  ollama: { kind: 'ollama' },
  ollama_chat: { kind: 'ollama' },
  hosted_vllm: { kind: 'vllm' },
  vllm: { kind: 'vllm' },
  lm_studio: { kind: 'lmstudio' },
  llamafile: { kind: 'llamacpp' },
  litellm_proxy: { kind: 'chat', keyVariable: 'LITELLM_PROXY_API_KEY', needsBase: true },
  custom_openai: { kind: 'chat', needsBase: true },
  openai_like: { kind: 'chat', needsBase: true },
  databricks: { kind: 'chat', keyVariable: 'DATABRICKS_API_KEY', needsBase: true },
  nvidia_nim: compatible('https://integrate.api.nvidia.com/v1', 'NVIDIA_NIM_API_KEY'),
  sambanova: compatible('https://api.sambanova.ai/v1', 'SAMBANOVA_API_KEY'),
  nebius: compatible('https://api.studio.nebius.ai/v1', 'NEBIUS_API_KEY'),
  novita: compatible('https://api.novita.ai/v3/openai', 'NOVITA_API_KEY'),
  meta_llama: compatible('https://api.llama.com/compat/v1', 'LLAMA_API_KEY'),
  codestral: compatible('https://codestral.mistral.ai/v1', 'CODESTRAL_API_KEY'),
  baseten: compatible('https://inference.baseten.co/v1', 'BASETEN_API_KEY'),
  volcengine: compatible('https://ark.cn-beijing.volces.com/api/v3', 'VOLCENGINE_API_KEY'),
};
