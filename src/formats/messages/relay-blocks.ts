/**
 * Renumbers the blocks of a relayed stream: SDKs use block indexes as list positions and drop deltas of unknown ones.
 */
import { scanMembers } from '../../base/json.ts';
import { patchMembers } from '../../base/json-edits.ts';

export class RelayedBlocks {
  #next = 0;
  /** Our indexes of the open blocks, by the upstream's, which may start at 1, have gaps or repeat. */
  readonly #open = new Map<unknown, number>();

  /** The event that opens a block, with our index. */
  start(data: string, index: unknown): string {
    this.#open.set(index, this.#next);
    return numbered(data, index, this.#next++);
  }

  delta(data: string, index: unknown): string {
    return numbered(data, index, this.#open.get(index));
  }

  stop(data: string, index: unknown): string {
    const own = this.#open.get(index);
    this.#open.delete(index);
    return numbered(data, index, own);
  }

  /** The events that close the blocks that the upstream left open. */
  close(): string[] {
    const left = [...this.#open.values()];
    this.#open.clear();
    return left.map((index) => `{"type":"content_block_stop","index":${index}}`);
  }
}

function numbered(data: string, index: unknown, own: number | undefined): string {
  if (own === undefined || own === index) return data;
  return patchMembers(data, scanMembers(data), [{ key: 'index', json: String(own) }]);
}
