/** Secrets of the workspace, bound to hosts. */
import { useState } from 'preact/hooks';
import type { PageParts } from '../frame.tsx';
import { useApi } from '../query.ts';
import { useParams } from '../route.ts';
import { Button, Empty, Page } from '../ui/basics.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded, OutsideOfProgramme } from '../ui/inference-key.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { RemoveSecret, StoreSecret, secretColumns } from '../vault/secrets.tsx';

const PAGE = 50;
const HIDDEN = 404;

export function Vault({ session }: PageParts) {
  const { params, set } = useParams();
  const offset = useOffset();
  const [removing, setRemoving] = useState<string>();
  const reading = useApi(
    'GET /vault/secrets',
    { query: { offset, limit: PAGE } },
    { enabled: session.inference_key !== null },
  );
  if (session.inference_key === null) {
    return (
      <Page title="Vault">
        <InferenceKeyNeeded what="The vault" />
      </Page>
    );
  }
  return (
    <Page
      title="Vault"
      about="Secrets of the key's workspace. Code in a sandbox uses them without seeing them, at the hosts that you name."
      actions={
        <>
          <InferenceKeyInUse session={session} />
          {reading.data !== undefined && (
            <Button kind="main" icon="plus" onClick={() => set({ new: 'secret' })}>
              Store a secret
            </Button>
          )}
        </>
      }
    >
      {reading.error?.status === HIDDEN ? (
        <OutsideOfProgramme session={session} />
      ) : (
        <PagedList
          label="Secrets"
          reading={reading}
          rows={reading.data?.data}
          empty={
            <Empty icon="vault" title="No secrets">
              <p>Store one for the hosts where code in a sandbox may use it.</p>
            </Empty>
          }
          pages={{ size: PAGE }}
          keyOf={({ name }) => name}
          columns={secretColumns(setRemoving)}
        />
      )}
      {params.get('new') === 'secret' && <StoreSecret onClose={() => set({ new: undefined }, true)} />}
      {removing !== undefined && <RemoveSecret name={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}
