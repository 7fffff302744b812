/** Which container a call worked in, and which files it made there. */
import type { ContainerFile, ContainerUse } from '../../../containers/index.ts';
import type { Fields } from '../../../formats/conversation/fields.ts';

const MOST_SHOWN = 50;

/** Members of a tool's item, in the words of OpenAI's citations; nothing in a text refers to the files. */
export async function shownFiles(use: ContainerUse): Promise<Fields> {
  const made = await use.made();
  const files = made.slice(0, MOST_SHOWN).map((file) => citation(file, use.name));
  return { container_id: use.name, ...(files.length > 0 && { files }) };
}

function citation({ id, path }: ContainerFile, container: string): Fields {
  return {
    ...{ type: 'container_file_citation', container_id: container, file_id: id, filename: path },
    ...{ start_index: 0, end_index: 0 },
  };
}
