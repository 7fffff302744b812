/** A bucket of Amazon S3, by the four operations that batches need (docs.aws.amazon.com/AmazonS3/latest/API). */
import type { BucketPlace, BucketStore } from './bucket.ts';
import { type BatchRequest, call, forget, open, textOf } from './exchange.ts';

/** Objects of one batch: few. */
const MOST_PAGES = 20;
/** Content is not known before it is sent. It is protected by TLS. */
const UNSIGNED = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };

/** @param address of the service, without the bucket */
export function s3Store({ name: bucket }: Pick<BucketPlace, 'name'>, address: string): BucketStore {
  const at = (path: string, more: Partial<BatchRequest>): BatchRequest => ({
    ...{ path: '', url: `${address}/${bucket}${path}`, operation: 'bucket', headers: UNSIGNED },
    ...more,
  });
  return {
    async write(name, streamed, account) {
      const contentType = 'application/jsonl';
      await call(account, at(pathOf(name), { method: 'PUT', streamed, contentType }));
    },
    async list(prefix, account) {
      const names: string[] = [];
      let token: string | undefined;
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const query = new URLSearchParams({ 'list-type': '2', prefix, 'encoding-type': 'url' });
        if (token !== undefined) query.set('continuation-token', token);
        const xml = await textOf(await open(account, at(`?${query}`, { method: 'GET' })));
        for (const [, key = ''] of xml.matchAll(/<Key>([^<]*)<\/Key>/g)) names.push(decoded(key));
        token = /<NextContinuationToken>([^<]+)</.exec(xml)?.[1];
        if (token === undefined) break;
      }
      return names;
    },
    open: (name, account) => open(account, at(pathOf(name), { method: 'GET' })),
    remove: (name, account) => forget(account, at(pathOf(name), {})),
  };
}

function pathOf(name: string): string {
  return `/${name.split('/').map(encodeURIComponent).join('/')}`;
}

/** As S3 encodes the names of a list. */
function decoded(key: string): string {
  return decodeURIComponent(key.replaceAll('+', '%20'));
}
