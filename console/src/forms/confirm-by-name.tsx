import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { Dialog } from '../display/dialog';
import { ErrorAlert } from '../display/error-alert';

interface Props {
  opened: boolean;
  onClose: () => void;
  /** "Revoke key ci" */
  title: string;
  /** What will happen, and that it cannot be undone. */
  children: ReactNode;
  /** What must be typed. */
  name: string;
  /** The label of the button: "Revoke key". */
  action: string;
  pending: boolean;
  error: unknown;
  onConfirm: () => void;
}

/** Asks for the name of what will be lost before it does what cannot be undone. */
export function ConfirmByName(props: Props) {
  return (
    <Dialog opened={props.opened} onClose={props.onClose} title={props.title} centered>
      <Form key={String(props.opened)} {...props} />
    </Dialog>
  );
}

function Form({ children, name, action, pending, error, onClose, onConfirm }: Props) {
  const [typed, setTyped] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A form inside a portal still bubbles to the form around it, which would be saved.
    event.stopPropagation();
    if (typed === name) onConfirm();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm" component="div">
          {children}
        </Text>
        <TextInput
          label={`Type ${name} to confirm`}
          styles={{ label: { overflowWrap: 'anywhere' } }}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
          data-autofocus
        />
        <ErrorAlert error={error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color="red.8" disabled={typed !== name} loading={pending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
