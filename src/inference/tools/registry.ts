/** Every server tool that is built. */
import { applyPatch } from './apply-patch/index.ts';
import { advisor, fusion, subagent } from './asking/index.ts';
import { datetime } from './datetime.ts';
import { memory, textEditor } from './editing/index.ts';
import { fileSearch } from './file-search.ts';
import { files } from './files.ts';
import { imageGeneration } from './image-generation.ts';
import { mcp } from './mcp/index.ts';
import { searchModels } from './search-models.ts';
import { bash, codeInterpreter, shell } from './shell/index.ts';
import type { ServerTool } from './tool.ts';
import { webFetch } from './web-fetch.ts';
import { webSearch } from './web-search.ts';

const TOOLS: readonly ServerTool[] = [
  advisor,
  applyPatch,
  bash,
  codeInterpreter,
  datetime,
  files,
  fileSearch,
  fusion,
  imageGeneration,
  mcp,
  memory,
  searchModels,
  shell,
  subagent,
  textEditor,
  webFetch,
  webSearch,
];

const BY_NAME = new Map<string, ServerTool>(TOOLS.map((tool) => [tool.name, tool]));

/** @param name a wire name */
export function toolOf(name: string): ServerTool | undefined {
  return BY_NAME.get(name);
}
