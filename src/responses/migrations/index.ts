import type { Migration } from '../../storage/migrate.ts';
import { responses } from './0240-responses.ts';
import { responseEvents } from './0241-response-events.ts';
import { conversations } from './0242-conversations.ts';
import { itemReferences } from './0243-item-references.ts';
import { conversationContext } from './0244-conversation-context.ts';

export const responseMigrations: readonly Migration[] = [
  responses,
  responseEvents,
  conversations,
  itemReferences,
  conversationContext,
];
