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
import type { ApiOperations } from './api.gen.ts';
import { type ApiError, type ApiName, api, type Call, type Reply } from './api.ts';

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
    ...(every !== undefined && { refetchInterval: every }),
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
  return useMutation<R, ApiError, V>({
    mutationFn: run,
    async onSuccess(result, value) {
      done?.(result, value);
      await Promise.all(stale.map((name) => client.invalidateQueries({ queryKey: [name] })));
    },
  });
}
