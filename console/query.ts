/** Reads and changes through the query cache: what was shown stays while the next page loads. */
import {
  keepPreviousData,
  QueryClient,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/preact-query';
import { useRef } from 'preact/hooks';
import type { ApiOperations } from './api.gen.ts';
import { type ApiError, type ApiName, api, type Call, type Reply } from './api.ts';

const ENDED = 401;
/** The session has ended. */
export const hasEnded = (error: unknown): boolean => (error as ApiError | null)?.status === ENDED;

const FRESH_MS = 10_000;
const MOST_RETRIES = 2;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      refetchOnWindowFocus: false,
      retry: (failures, error) => {
        const { status } = error as ApiError;
        return failures < MOST_RETRIES && (status === 0 || status >= 500);
      },
    },
    mutations: { retry: false },
  },
});

interface ReadOptions {
  /** False: not now. */
  enabled?: boolean;
  /** Milliseconds between readings. */
  every?: number | undefined;
}

export function useApi<N extends ApiName>(
  name: N,
  call: Call<ApiOperations[N]> = {},
  { enabled = true, every }: ReadOptions = {},
): UseQueryResult<Reply<N>, ApiError> {
  return useQuery<Reply<N>, ApiError>({
    queryKey: [name, call],
    queryFn: ({ signal }) => api(name, { ...call, signal }),
    enabled,
    placeholderData: keepPreviousData,
    // Without a session every reading would be refused.
    ...(every !== undefined && { refetchInterval: ({ state }) => (hasEnded(state.error) ? false : every) }),
  });
}

/** Operations that return pages of rows by their offset. */
type ListName = {
  [N in ApiName]: ApiOperations[N] extends { query: { offset?: number }; reply: { data: unknown[] } } ? N : never;
}[ApiName];

interface Everything<R> {
  rows: readonly R[];
  /** There are more than `MOST_ROWS`. */
  isCut: boolean;
}

/** Rows of a page. It is that of `GET /keys`, which has no other, and the most that the others have. */
const PAGE = 100;
const MOST_PAGES = 50;
export const MOST_ROWS = MOST_PAGES * PAGE;

/** Keys have a hash, secrets a name, all others an id. */
function identityOf(row: object): unknown {
  const { hash, id, name } = row as { hash?: string; id?: string; name?: string };
  return hash ?? id ?? name;
}

/** Reads all pages of a list: for choices, and to show names instead of ids. */
export function useAll<N extends ListName>(
  name: N,
  call: Pick<Call<ApiOperations[N]>, 'path' | 'query'> = {},
): UseQueryResult<Everything<Reply<N>['data'][number]>, ApiError> {
  return useQuery<Everything<Reply<N>['data'][number]>, ApiError>({
    queryKey: [name, call, 'all'],
    async queryFn({ signal }) {
      // What is created meanwhile can move a row to the next page.
      const rows = new Map<unknown, Reply<N>['data'][number]>();
      const size = name === 'GET /keys' ? {} : { limit: PAGE };
      for (let page = 0; page < MOST_PAGES; page++) {
        const query = { ...call.query, ...size, offset: page * PAGE } as ApiOperations[N]['query'];
        const { data } = await api(name, { ...call, query, signal });
        for (const row of data) rows.set(identityOf(row), row);
        if (data.length < PAGE) return { rows: [...rows.values()], isCut: false };
      }
      return { rows: [...rows.values()], isCut: true };
    },
    placeholderData: keepPreviousData,
  });
}

/** Whether each reading has a reply or an error: content below is then in its place. */
export function areSettled(...readings: readonly Pick<UseQueryResult<unknown, ApiError>, 'data' | 'error'>[]): boolean {
  return readings.every(({ data, error }) => data !== undefined || error !== null);
}

/** @param stale names of operations whose replies change with it */
export function useChange<V, R>(
  run: (value: V) => Promise<R>,
  stale: readonly ApiName[] = [],
  done?: (result: R, value: V) => void,
): UseMutationResult<R, ApiError, V> {
  const client = useQueryClient();
  // The mutation takes new options after the next paint. A form that is submitted before must send what it shows.
  const latest = useRef({ run, done });
  latest.current = { run, done };
  return useMutation<R, ApiError, V>({
    mutationFn: (value) => latest.current.run(value),
    async onSuccess(result, value) {
      latest.current.done?.(result, value);
      await Promise.all(stale.map((name) => client.invalidateQueries({ queryKey: [name] })));
    },
  });
}
