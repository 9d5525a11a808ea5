import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ConfirmByName } from './confirm-by-name';
import { cancelReads, removalKey } from './use-removal';

interface Props {
  /** ID of what is gone afterwards: nothing asks for it any more. Absent if it can still be read. */
  id?: string;
  /** The word on the button: "Remove". */
  verb?: string;
  /** What it is done to, such as "provider". */
  what: string;
  /** The title of the dialog, unless it is "Remove provider openai". */
  title?: string;
  /** What must be typed. */
  name: string;
  /** Sends the request. */
  remove: () => Promise<unknown>;
  /** First members of the keys of the queries that show it. */
  lists: readonly string[];
  /** Called before these are read again. */
  onRemoved?: () => void;
  /** What will happen. */
  children: ReactNode;
}

/** A button that removes what a drawer shows, once its name was typed. */
export function RemoveAction({
  id,
  verb = 'Remove',
  what,
  title,
  name,
  remove,
  lists,
  onRemoved,
  children,
}: Props) {
  const [opened, setOpened] = useState(false);
  const client = useQueryClient();
  const close = () => setOpened(false);
  const removal = useMutation({
    ...(id !== undefined && { mutationKey: removalKey(id), onMutate: () => cancelReads(client, id) }),
    mutationFn: remove,
    onSuccess: async () => {
      onRemoved?.();
      await Promise.all(lists.map((list) => client.invalidateQueries({ queryKey: [list] })));
      close();
    },
  });
  return (
    <>
      <Button size="xs" variant="outline" color="red" c="var(--postern-bad)" onClick={() => setOpened(true)}>
        {verb}
      </Button>
      <ConfirmByName
        opened={opened}
        onClose={close}
        title={title ?? `${verb} ${what} ${name}`}
        name={name}
        action={`${verb} ${what}`}
        pending={removal.isPending}
        error={removal.error}
        onConfirm={() => removal.mutate()}
      >
        {children}
      </ConfirmByName>
    </>
  );
}
