/** GET /organization/members. */
import { type Static, Type } from 'typebox';
import { MANAGEMENT } from '../../http/access-rule.ts';
import { listOf, listReply, nullable, ok, PageQuery, pageOf } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Database } from '../../storage/database.ts';
import type { Caller } from '../caller.ts';
import { countMembers, listMembers, type Member } from './store.ts';

const MemberSchema = Type.Object(
  {
    id: Type.String(),
    email: Type.String({ description: 'Empty when not known' }),
    first_name: nullable(Type.String()),
    last_name: nullable(Type.String()),
    role: Type.Union([Type.Literal('org:admin'), Type.Literal('org:member')]),
  },
  { $id: 'OrganizationMember' },
);

const MembersEnvelope = listOf(MemberSchema);

export function memberOperations(parts: { database: Database }): Operation<Caller>[] {
  return [
    {
      id: 'listOrganizationMembers',
      method: 'GET',
      path: '/organization/members',
      summary: 'List the members of the organization, oldest first',
      tag: 'Members',
      access: MANAGEMENT,
      query: PageQuery,
      replies: ok('One page', MembersEnvelope),
      async handle(exchange) {
        const { database } = parts;
        const { organizationId } = exchange.caller;
        const { offset, limit } = pageOf(exchange.query);
        const [members, count] = await Promise.all([
          listMembers(database, organizationId, offset, limit),
          countMembers(database, organizationId),
        ]);
        exchange.reply(200, listReply(members.map(memberReply), count));
      },
    },
  ];
}

function memberReply({ userId, name, email, givenName, familyName, role }: Member): Static<typeof MemberSchema> {
  const [first = null, ...rest] = name.split(' ').filter(Boolean);
  const known = givenName !== null || familyName !== null;
  return {
    id: userId,
    email: email ?? '',
    first_name: known ? givenName : first,
    last_name: known ? familyName : rest.join(' ') || null,
    role: `org:${role}`,
  };
}
