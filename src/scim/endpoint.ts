/**
 * The common part of `/Users` and `/Groups`: find the resource of the path, write it if the client knows its version,
 * and return its new state.
 */
import type { Caller } from '../access/index.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import type { ListQuery } from './filter.sql.ts';
import type { ResourceType } from './protocol/attributes.ts';
import type { Condition } from './protocol/condition.ts';
import { notFound } from './protocol/fault.ts';
import * as protocol from './protocol/operation.ts';
import type { Projection } from './protocol/projection.ts';
import type { Attributes } from './protocol/resource.ts';
import { type Provisioning, type ProvisioningParts, provisionPushed } from './provisioning.ts';

/** Stored resources of one type. */
interface Kept<Stored extends protocol.Versioned> {
  readonly type: ResourceType;
  idOf(stored: Stored): string;
  /** @param id as the client sent it, possibly unknown or malformed */
  find(db: Queryable, organizationId: string, id: string): Promise<Stored | undefined>;
  count(db: Queryable, organizationId: string, condition: Condition | undefined): Promise<number>;
  /** May return fewer than `limit` resources if more would make the page too large. */
  list(db: Queryable, organizationId: string, question: ListQuery, projection: Projection): Promise<readonly Stored[]>;
  /** The wire representation; `root` is the client's URL of `/scim/v2`. */
  announce(db: Queryable, stored: readonly Stored[], projection: Projection, root: string): Promise<Attributes[]>;
}

export class Endpoint<Stored extends protocol.Versioned> {
  readonly #parts: ProvisioningParts;
  readonly #kept: Kept<Stored>;

  constructor(parts: ProvisioningParts, kept: Kept<Stored>) {
    this.#parts = parts;
    this.#kept = kept;
  }

  /** GET with a query, and POST to `.search`. */
  listOperations(listing: Omit<protocol.Listing, 'type' | 'read'>): Operation<Caller>[] {
    const kept = this.#kept;
    return protocol.listOperations({
      ...listing,
      type: kept.type,
      read: async (exchange, { condition, order, startIndex, count, projection }) => {
        const { database } = this.#parts;
        const { organizationId } = exchange.caller;
        const total = await kept.count(database, organizationId, condition);
        const question = { condition, order, offset: startIndex - 1, limit: count };
        const found = count === 0 ? [] : await kept.list(database, organizationId, question, projection);
        return { total, resources: await kept.announce(database, found, projection, protocol.rootUrl(exchange)) };
      },
    });
  }

  /** The resource of the path. Throws 404. */
  existing(exchange: Exchange<Caller>): Promise<Stored> {
    return this.#existing(this.#parts.database, exchange);
  }

  /**
   * @param write creates the resource and returns its id
   * @returns the created resource
   */
  create(exchange: Exchange<Caller>, write: (provisioning: Provisioning) => Promise<string>): Promise<Stored> {
    return this.#written(exchange, write);
  }

  /** Returns the resource after the change. Throws 404, and 412 if `If-Match` names other versions only. */
  change(
    exchange: Exchange<Caller>,
    write: (provisioning: Provisioning, before: Stored) => Promise<void>,
  ): Promise<Stored> {
    return this.#written(exchange, async (provisioning) => {
      const before = await this.#known(provisioning.tx, exchange);
      await write(provisioning, before);
      return this.#kept.idOf(before);
    });
  }

  /** Throws like `change`. */
  async remove(
    exchange: Exchange<Caller>,
    write: (provisioning: Provisioning, before: Stored) => Promise<void>,
  ): Promise<void> {
    await provisionPushed(this.#parts, exchange, async (provisioning) => {
      await write(provisioning, await this.#known(provisioning.tx, exchange));
    });
    exchange.reply(204, undefined);
  }

  async reply(exchange: Exchange<Caller>, status: 200 | 201, stored: Stored): Promise<void> {
    const { type, idOf, announce } = this.#kept;
    const root = protocol.rootUrl(exchange);
    const projection = protocol.projectionOf(type, exchange.query);
    const [resource] = await announce(this.#parts.database, [stored], projection, root);
    protocol.replyResource(exchange, status, resource!, protocol.metaOf(type, idOf(stored), stored, root));
  }

  #written(exchange: Exchange<Caller>, write: (provisioning: Provisioning) => Promise<string>): Promise<Stored> {
    return provisionPushed(this.#parts, exchange, async (provisioning) => {
      const id = await write(provisioning);
      return (await this.#kept.find(provisioning.tx, provisioning.organizationId, id))!;
    });
  }

  /** The resource, if the client knows its version. */
  async #known(tx: Queryable, exchange: Exchange<Caller>): Promise<Stored> {
    const stored = await this.#existing(tx, exchange);
    protocol.checkVersion(exchange, stored.version);
    return stored;
  }

  async #existing(db: Queryable, { caller, params }: Exchange<Caller>): Promise<Stored> {
    const id = params['id']!;
    const stored = await this.#kept.find(db, caller.organizationId, id);
    if (!stored) throw notFound(this.#kept.type.name.toLowerCase(), id);
    return stored;
  }
}
