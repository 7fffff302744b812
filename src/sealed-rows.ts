/** Every encrypted column, one line per folder: the columns that a key rotation re-encrypts. */
import { sealedByokCredentials } from './byok/index.ts';
import { sealedCallbackSecrets } from './callbacks/index.ts';
import { sealedDestinationBatches, sealedDestinationSecrets } from './destinations/index.ts';
import { sealedPeerKeys } from './interns/index.ts';
import { sealedMemories } from './memories/index.ts';
import { sealedConversationKeys, sealedResponseKeys } from './responses/index.ts';
import type { SealedRows } from './sealing/index.ts';
import { sealedSigningKeys } from './sign-in/index.ts';
import { sealedVaultKeys } from './vault/index.ts';
import { sealedVectorStoreKeys } from './vector-stores/index.ts';

export const sealedRows: readonly SealedRows[] = [
  sealedByokCredentials,
  sealedSigningKeys,
  sealedCallbackSecrets,
  sealedVaultKeys,
  sealedDestinationSecrets,
  sealedDestinationBatches,
  sealedPeerKeys,
  sealedResponseKeys,
  sealedConversationKeys,
  sealedMemories,
  sealedVectorStoreKeys,
];
