import { Alert, Button, Group, Stack } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Snippet } from '../display/copyable';
import { Dialog } from '../display/dialog';

/** A secret that is shown once. It lives only as long as this dialog, which Escape closes once the secret was copied. */
export function ShownOnce({
  secret,
  what,
  title,
  lost,
  children,
  onClose,
}: {
  secret: string;
  /** What it is: "token". */
  what: string;
  title: string;
  /** What to do if it is lost. */
  lost: string;
  children?: ReactNode;
  onClose: () => void;
}) {
  const [copied, setCopied] = useState(false);
  return (
    <Dialog
      opened
      onClose={onClose}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={copied}
    >
      <Stack gap="md">
        <Alert
          variant="outline"
          color="yellow"
          title={`Copy the ${what} now`}
          styles={{ title: { color: 'var(--postern-warning)' } }}
        >
          It is shown only here and only once. {lost}
        </Alert>
        <div onCopy={() => setCopied(true)} onClick={() => setCopied(true)}>
          <Snippet text={secret} what={what} />
        </div>
        {children}
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
