/** A list that the server has pages of: its table, what is shown while it loads and where it is empty, and its pager. */
import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api.ts';
import { useParams } from '../route.ts';
import { Card, Empty, Problem, Waiting } from './basics.tsx';
import { CursorPager, Pager, Table, type TableProps } from './table.tsx';

/** A page by its number of rows; `total` where the server counts them. */
interface OffsetPages {
  size: number;
  total?: number | undefined;
}

/** A page by a cursor; undefined or null on the last one. */
interface CursorPages {
  next: string | null | undefined;
}

/** What `useApi` returns, as far as a list needs it. */
interface Reading {
  readonly error: ApiError | null;
  /** The rows are those of another page or other filters. */
  readonly isPlaceholderData: boolean;
  refetch(): unknown;
}

interface PagedListProps<R> extends Omit<TableProps<R>, 'rows' | 'stale'> {
  reading: Reading;
  /** Undefined until they are read. */
  rows: readonly R[] | undefined;
  empty: ComponentChildren;
  pages: OffsetPages | CursorPages;
  /** Of the card; for a page with several lists. */
  title?: string;
  actions?: ComponentChildren;
  /** Rows of the placeholder. */
  lines?: number;
}

/** The offset of the page that the address names, for `PagedList` and its reading. */
export function useOffset(): number {
  const offset = Number(useParams().params.get('offset') ?? 0);
  return Number.isSafeInteger(offset) && offset >= 0 ? offset : 0;
}

export function useCursor(): string | undefined {
  return useParams().params.get('cursor') ?? undefined;
}

export function PagedList<R>({ reading, rows, empty, pages, title, actions, lines = 6, ...table }: PagedListProps<R>) {
  const { error, isPlaceholderData, refetch } = reading;
  const problem = <Problem error={error} retry={() => void refetch()} />;
  if (rows === undefined && error !== null) return problem;
  const isFirst = useOffset() === 0 && useCursor() === undefined;
  return (
    <>
      {problem}
      <Card flush title={title} actions={actions}>
        {rows === undefined ? (
          <Waiting lines={lines} />
        ) : rows.length === 0 ? (
          isFirst ? (
            empty
          ) : (
            <Empty icon="search" title="Nothing on this page" />
          )
        ) : (
          <Table {...table} rows={rows} stale={isPlaceholderData} />
        )}
        <Pages pages={pages} shown={rows?.length ?? 0} />
      </Card>
    </>
  );
}

function Pages({ pages, shown }: { pages: OffsetPages | CursorPages; shown: number }) {
  const { set } = useParams();
  const offset = useOffset();
  const cursor = useCursor();
  if ('next' in pages) {
    return (
      <CursorPager
        next={pages.next}
        isFirst={cursor === undefined}
        onNext={(next) => set({ cursor: next })}
        onFirst={() => set({ cursor: undefined })}
      />
    );
  }
  return (
    <Pager
      offset={offset}
      size={pages.size}
      shown={shown}
      total={pages.total}
      onOffset={(next) => set({ offset: next || undefined })}
    />
  );
}
