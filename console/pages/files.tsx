/** Files of a workspace: uploaded, downloaded and deleted here. */
import { useRef, useState } from 'preact/hooks';
import type { ApiFile, ApiFileList } from '../api.gen.ts';
import { api, queryText, request } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { useParams } from '../route.ts';
import { Button, Copy, Empty, Page, Problem } from '../ui/basics.tsx';
import { bytes, dayText } from '../ui/format.ts';
import { Confirm } from '../ui/forms.tsx';
import { ActionInRow, DeleteInRow } from '../ui/item-actions.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';
import { saveAs } from '../ui/save.ts';
import { WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;

export function Files(_: PageParts) {
  const { params, set } = useParams();
  const cursor = useCursor();
  const workspace = params.get('workspace') ?? '';
  const [removing, setRemoving] = useState<ApiFile>();
  const input = useRef<HTMLInputElement>(null);
  const place = workspace === '' ? {} : { workspace_id: workspace };
  const reading = useApi('GET /files', {
    query: { limit: PAGE, ...place, ...(cursor && { cursor }) },
  });
  const list = reading.data as ApiFileList | undefined;
  const upload = useChange(
    (file: File) => {
      const form = new FormData();
      form.set('file', file);
      return request('POST', `../api/v1/files${queryText(place)}`, { body: form });
    },
    ['GET /files'],
  );
  const download = useChange(async (file: ApiFile) => {
    const response = await request(
      'GET',
      `../api/v1/files/${encodeURIComponent(file.id)}/content${queryText(place)}`,
      {},
    );
    saveAs(file.filename, await response.blob());
  });
  return (
    <Page
      title="Files"
      about="Files that conversations and batches can name by id."
      actions={
        <>
          <input
            ref={input}
            type="file"
            hidden
            onChange={(event) => {
              const [file] = event.currentTarget.files ?? [];
              if (file) upload.mutate(file);
              // So that the same file can be chosen again, such as after an error.
              event.currentTarget.value = '';
            }}
          />
          <Button kind="main" icon="plus" busy={upload.isPending} onClick={() => input.current?.click()}>
            Upload a file
          </Button>
        </>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      <Problem error={upload.error ?? download.error} />
      <PagedList
        reading={reading}
        rows={list?.data}
        empty={
          <Empty icon="files" title="No files">
            <p>Upload one here or with the SDKs of OpenAI and Anthropic. Requests then name it by its id.</p>
          </Empty>
        }
        pages={{ next: list?.has_more ? (list.cursor ?? list.last_id) : undefined }}
        label="Files"
        keyOf={({ id }) => id}
        columns={[
          { head: 'Name', cell: (file) => <span class="clip">{file.filename}</span> },
          {
            head: 'Id',
            minor: true,
            cell: (file) => (
              <span class="inline kept mono small">
                <span class="clip short">{file.id}</span>{' '}
                <Copy text={file.id} label={`Copy the id of ${file.filename}`} />
              </span>
            ),
          },
          { head: 'Type', minor: true, cell: (file) => file.mime_type },
          { head: 'Size', end: true, cell: (file) => bytes(file.size_bytes) },
          { head: 'Uploaded', end: true, minor: true, cell: (file) => dayText(file.created_at) },
          {
            head: 'Change',
            end: true,
            cell: (file) => (
              <>
                {file.downloadable && (
                  <ActionInRow name={file.filename} onClick={() => download.mutate(file)}>
                    Download
                  </ActionInRow>
                )}
                <DeleteInRow name={file.filename} onClick={() => setRemoving(file)} />
              </>
            ),
          },
        ]}
      />
      {removing && <RemoveFile file={removing} place={place} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

function RemoveFile({ file, place, onClose }: { file: ApiFile; place: object; onClose(): void }) {
  const change = useChange(
    () => api('DELETE /files/{file_id}', { path: { file_id: file.id }, query: place }),
    ['GET /files'],
    onClose,
  );
  return (
    <Confirm title={`Delete ${file.filename}?`} action="Delete the file" change={change} onClose={onClose}>
      <p>
        Its {bytes(file.size_bytes)} are lost, here and in copies at providers. Requests that name {file.id} are
        refused.
      </p>
    </Confirm>
  );
}
