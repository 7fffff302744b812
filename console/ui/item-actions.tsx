/** The buttons that edit and delete an item, the same on every page. */
import type { ComponentChildren } from 'preact';
import { Button } from './basics.tsx';

interface ItemActionsProps {
  onEdit?(): void;
  onDelete(): void;
  /** Further actions. */
  children?: ComponentChildren;
}

/** In the header of the item's page. */
export function ItemActions({ onEdit, onDelete, children }: ItemActionsProps) {
  return (
    <>
      {onEdit !== undefined && <Button onClick={onEdit}>Edit</Button>}
      {children}
      <Button kind="danger" icon="trash" onClick={onDelete}>
        Delete
      </Button>
    </>
  );
}

interface RowActionProps {
  /** The name of the thing, for screen readers. */
  name: string;
  busy?: boolean;
  onClick(): void;
}

/** In a row of a list. */
export function DeleteInRow({ name, onClick }: RowActionProps) {
  return <Button kind="quiet" icon="trash" label={`Delete ${name}`} onClick={onClick} />;
}

export function ActionInRow({ name, busy, onClick, children }: RowActionProps & { children: string }) {
  return (
    <Button kind="quiet" {...(busy !== undefined && { busy })} onClick={onClick}>
      {children}
      <span class="unseen"> {name}</span>
    </Button>
  );
}
