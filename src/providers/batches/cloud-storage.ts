/** A bucket of Google Cloud Storage, by its JSON API (cloud.google.com/storage/docs/json_api). */
import type { BucketPlace, BucketStore } from './bucket.ts';
import { type BatchRequest, call, forget, listIn, open, pages } from './exchange.ts';

/** @param address of the service, without the bucket */
export function cloudStorage({ name: bucket }: Pick<BucketPlace, 'name'>, address: string): BucketStore {
  const at = (path: string, more: Partial<BatchRequest>): BatchRequest => ({
    ...{ path: '', url: address + path, operation: 'bucket', ...more },
  });
  const objects = `/storage/v1/b/${bucket}/o`;
  const pathOf = (name: string) => `${objects}/${encodeURIComponent(name)}`;
  return {
    async write(name, streamed, account) {
      const path = `/upload${objects}?uploadType=media&name=${encodeURIComponent(name)}`;
      await call(account, at(path, { streamed, contentType: 'application/jsonl' }));
    },
    async list(prefix, account) {
      const names: string[] = [];
      const path = `${objects}?fields=items(name),nextPageToken&prefix=${encodeURIComponent(prefix)}`;
      const page = (more: string) => call(account, at(path + more, { method: 'GET' }));
      for await (const list of pages(page, { parameter: 'pageToken', member: 'nextPageToken' })) {
        for (const object of listIn(list, 'items')) names.push(String(object['name']));
      }
      return names;
    },
    open: (name, account) => open(account, at(`${pathOf(name)}?alt=media`, { method: 'GET' })),
    remove: (name, account) => forget(account, at(pathOf(name), {})),
  };
}
