/** Tables: a row is a link if there is more to see, arrow keys move between rows, and the server has the pages. */
import type { ComponentChildren, JSX } from 'preact';
import { Button } from './basics.tsx';
import { count } from './format.ts';

export interface Column<R> {
  head: string;
  cell(row: R): ComponentChildren;
  /** Numbers are aligned at their end. */
  end?: boolean;
  /** Left out on narrow screens. */
  minor?: boolean;
}

export interface TableProps<R> {
  label: string;
  rows: readonly R[];
  columns: readonly Column<R>[];
  keyOf(row: R): string;
  /** Where the first cell leads. */
  linkOf?(row: R): string;
  /** True while other rows are being loaded. */
  stale?: boolean;
}

export function Table<R>({ label, rows, columns, keyOf, linkOf, stale }: TableProps<R>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section class="table-frame" tabIndex={0} aria-label={label}>
      <table class={stale ? 'stale' : undefined} onKeyDown={moveByArrow}>
        <thead>
          <tr>
            {columns.map(({ head, end, minor }) => (
              <th key={head} scope="col" class={classOf(end, minor)}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={linkOf ? 'linked' : undefined}>
              {columns.map(({ head, cell, end, minor }, at) => (
                <td key={head} class={classOf(end, minor)}>
                  {at === 0 && linkOf ? (
                    <a class="row-link" href={linkOf(row)}>
                      {cell(row)}
                    </a>
                  ) : (
                    cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function classOf(end: boolean | undefined, minor: boolean | undefined): string | undefined {
  return [end && 'end', minor && 'minor'].filter(Boolean).join(' ') || undefined;
}

function moveByArrow(event: JSX.TargetedKeyboardEvent<HTMLTableElement>): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('a.row-link')];
  const next = links[links.indexOf(document.activeElement as HTMLElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

interface PagerProps {
  offset: number;
  /** Rows of a full page. */
  size: number;
  /** Rows of this page. */
  shown: number;
  /** Over all pages, where the server counts them. */
  total?: number | undefined;
  onOffset(offset: number): void;
}

export function Pager({ offset, size, shown, total, onOffset }: PagerProps) {
  const hasMore = total === undefined ? shown === size : offset + shown < total;
  if (offset === 0 && !hasMore) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <span class="soft">
        {shown > 0 && `${count(offset + 1)}–${count(offset + shown)}`}
        {total !== undefined && ` of ${count(total)}`}
      </span>
      <Button disabled={offset === 0} onClick={() => onOffset(Math.max(0, offset - size))}>
        Previous
      </Button>
      <Button disabled={!hasMore} onClick={() => onOffset(offset + size)}>
        Next
      </Button>
    </nav>
  );
}

interface CursorPagerProps {
  /** Undefined on the last page. */
  next: string | null | undefined;
  isFirst: boolean;
  onNext(cursor: string): void;
  onFirst(): void;
}

/** For lists that only go forward; the back button goes back. */
export function CursorPager({ next, isFirst, onNext, onFirst }: CursorPagerProps) {
  if (isFirst && next == null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button disabled={isFirst} onClick={onFirst}>
        Newest
      </Button>
      <Button disabled={next == null} onClick={() => next != null && onNext(next)}>
        Older
      </Button>
    </nav>
  );
}
