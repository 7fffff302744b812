/** `/files?provider=...`: the files of the caller's own account at a vendor. Nothing of them is kept here. */
import { pipeline } from 'node:stream/promises';
import type { Caller } from '../../access/index.ts';
import { authorOf, recordChange } from '../../audit/index.ts';
import { notFound } from '../../base/errors.ts';
import type { Blobs } from '../../blobs/index.ts';
import type { Exchange } from '../../http/operation.ts';
import type { DeliveryParts, UpstreamTarget } from '../../providers/index.ts';
import type { Database } from '../../storage/database.ts';
import { lifetimeOf } from '../expiry.ts';
import { checkFilename } from '../filename.ts';
import { readForm } from '../form.ts';
import { purposeOf } from '../purpose.ts';
import { shapeOf } from '../shape.ts';
import { checkUpload, type VendorAccess, vendorTarget } from './access.ts';
import { callVendor, openVendor, type VendorRequest } from './call.ts';
import { uploadRequest } from './form.ts';
import { type Vendor, type VendorName, vendorNamed } from './names.ts';
import { type ListQuery, listPath, vendorDeleted, vendorFile, vendorList } from './shape.ts';

export interface VendorParts {
  access: VendorAccess;
  delivery: DeliveryParts;
}

interface Parts {
  database: Database;
  blobs: Blobs;
  namespace: string;
  vendors: VendorParts;
  limits: { fileBytes: number };
}

/** One request for the files of a vendor. @param workspaceId whose credentials may be used */
export class VendorFiles {
  readonly #parts: Parts;
  readonly #exchange: Exchange<Caller>;
  readonly #workspaceId: string;
  readonly #vendor: Vendor;

  constructor(parts: Parts, exchange: Exchange<Caller>, workspaceId: string, vendor: VendorName) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#workspaceId = workspaceId;
    this.#vendor = vendorNamed(vendor);
  }

  async list(): Promise<void> {
    const path = listPath(this.#exchange.query as ListQuery, this.#vendor);
    const list = await this.#call({ path, method: 'GET' });
    this.#reply(vendorList(list, this.#vendor, this.#shape, this.#parts.namespace));
  }

  async get(): Promise<void> {
    this.#reply(this.#shown(await this.#call({ path: this.#path(), method: 'GET' })));
  }

  /** The content is staged as a blob first, so that only a whole, acceptable form reaches the vendor. */
  async upload(): Promise<void> {
    const { limits, vendors, blobs, database } = this.#parts;
    const { caller, headers, upload } = this.#exchange;
    const target = await this.#target();
    checkUpload(vendors.access, caller, this.#vendor);
    const type = headers['content-type'] ?? '';
    const staged = await readForm(
      upload!,
      type,
      () => limits.fileBytes,
      async (file, fields) => {
        const filename = checkFilename(file.filename);
        return { filename, mimeType: file.mimeType, fields, blob: await blobs.write(file.content) };
      },
    );
    const { blob, filename, mimeType, fields } = staged;
    try {
      const content = await blobs.read(blob.id);
      const request = uploadRequest(
        { filename, mimeType, bytes: blob.bytes, content },
        vendorFields(this.#vendor, fields),
      );
      const file = await callVendor(target, this.#vendor, request, vendors.delivery);
      await this.#record('file.created', String(file['id']), { after: this.#shown(file) });
      this.#reply(this.#shown(file));
    } finally {
      // Otherwise it goes with the abandoned ones.
      await blobs.drop(database, blob.id).catch(() => {});
    }
  }

  async download(): Promise<void> {
    const target = await this.#target();
    const request = { path: `${this.#path()}/content`, method: 'GET' } as const;
    const { content, contentType } = await openVendor(target, this.#vendor, request, this.#parts.vendors.delivery);
    this.#exchange.response.writeHead(200, {
      'Content-Type': contentType,
      'Content-Disposition': `attachment; filename="${this.#exchange.params['file_id']}"`,
      'X-Content-Type-Options': 'nosniff',
    });
    await pipeline(content, this.#exchange.response);
  }

  async delete(): Promise<void> {
    const id = this.#exchange.params['file_id'] ?? '';
    await this.#call({ path: this.#path(), method: 'DELETE' });
    await this.#record('file.deleted', id, { before: { id, provider: this.#vendor } });
    this.#reply(vendorDeleted(id, this.#shape, this.#parts.namespace));
  }

  get #shape() {
    return shapeOf(this.#exchange.headers, this.#exchange.query as { provider?: VendorName });
  }

  /** It becomes part of a URL. */
  #path(): string {
    const id = this.#exchange.params['file_id'] ?? '';
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)) throw notFound('file with this id at the provider');
    return `/files/${id}`;
  }

  #target(): Promise<UpstreamTarget> {
    return vendorTarget(this.#parts.vendors.access, this.#exchange.caller, this.#workspaceId, this.#vendor);
  }

  async #call(request: VendorRequest): Promise<Record<string, unknown>> {
    return callVendor(await this.#target(), this.#vendor, request, this.#parts.vendors.delivery);
  }

  #shown(file: Record<string, unknown>) {
    return vendorFile(file, this.#vendor, this.#shape, this.#parts.namespace);
  }

  #reply(body: Readonly<Record<string, unknown>>): void {
    this.#exchange.reply(200, body);
  }

  async #record(action: string, id: string, change: { before?: object; after?: object }): Promise<void> {
    const resource = { resourceType: 'file', resourceId: id, workspaceId: this.#workspaceId };
    await this.#parts.database.transaction((tx) =>
      recordChange(tx, authorOf(this.#exchange), { action, ...resource, ...change } as Parameters<
        typeof recordChange
      >[2]),
    );
  }
}

/** What the form says of the file, in the words of the vendor. @throws GatewayError 400 */
function vendorFields(vendor: Vendor, fields: ReadonlyMap<string, string>): Record<string, string> {
  const lifetime = lifetimeOf(fields);
  const seconds = String(lifetime);
  if (vendor === 'anthropic') return lifetime === undefined ? {} : { expires_in_seconds: seconds };
  const expiry = { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': seconds };
  return { purpose: purposeOf(fields.get('purpose')), ...(lifetime !== undefined && expiry) };
}
