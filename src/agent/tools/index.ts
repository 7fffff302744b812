/** The agent's tools. A tool is one file here, and one entry of this list. */
import { askPerson } from './ask-person.ts';
import { fetchPage } from './fetch-page.ts';
import { editFileTool, readFileTool, writeFileTool } from './files.ts';
import { searchFiles } from './search-files.ts';
import { shell } from './shell.ts';
import type { Tool } from './tool.ts';

/** @param canAsk whether the other side can ask a person */
export function toolsFor(canAsk: boolean): readonly Tool[] {
  const tools = [shell, readFileTool, writeFileTool, editFileTool, searchFiles, fetchPage];
  return canAsk ? [...tools, askPerson] : tools;
}
